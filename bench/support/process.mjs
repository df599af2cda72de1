// What the kernel says of a process: Linux only, by /proc.
import { readFileSync, writeFileSync } from 'node:fs';

/** Clock ticks a second; the kernel tells user space 100 on every architecture. */
const TICKS = 100;

/** Seconds of processor time so far, in user and kernel mode. */
export function cpuSeconds(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const [utime, stime] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13);
  return (Number(utime) + Number(stime)) / TICKS;
}

/** Resident memory in MiB: now, and at its peak since the last `resetPeak`. */
export function residentMiB(pid) {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const of = (name) => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]) / 1024;
  return { now: of('VmRSS'), peak: of('VmHWM') };
}

/** Begins a new peak: the kernel's own switch for `VmHWM`. */
export function resetPeak(pid) {
  writeFileSync(`/proc/${pid}/clear_refs`, '5');
}
