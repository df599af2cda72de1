// What the kernel says of a process: Linux only, by /proc.
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';

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

/**
 * Which share of the processors, from 0 to 1, went to other processes since this was called. A time that was measured
 * beside busy neighbours says little, and even a ratio only that much.
 */
export function othersSince(ownPids) {
  const own = () => ownPids().reduce((sum, pid) => sum + cpuSeconds(pid), 0);
  const [start, busyBefore, ownBefore] = [performance.now(), busySeconds(), own()];
  return () => {
    const available = ((performance.now() - start) / 1000) * cpus().length;
    return Math.max(0, busySeconds() - busyBefore - (own() - ownBefore)) / available;
  };
}

/** Seconds that the machine's processors were not idle. */
function busySeconds() {
  const [, user, nice, system, , , irq, softirq, steal] = readFileSync('/proc/stat', 'utf8')
    .split('\n', 1)[0]
    .split(/\s+/)
    .map(Number);
  return (user + nice + system + irq + softirq + steal) / TICKS;
}
