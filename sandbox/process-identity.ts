import { readFileSync } from 'node:fs';

/** Names one process for good: a pid alone may be given to another process later. */
export interface ProcessIdentity {
  readonly pid: number;
  /**
   * When it started, in clock ticks since boot.
   *
   * @default - unknown (no /proc on this system); then only the pid is compared
   */
  readonly startTime?: string;
}

/** Reads the identity of a process that runs now. */
export function identify(pid: number): ProcessIdentity {
  const stat = readStat(pid);
  return stat === undefined ? { pid } : { pid, startTime: stat.startTime };
}

/** Whether that very process still runs. A zombie, ended but not yet reaped, does not. */
export function isRunning(process_: ProcessIdentity): boolean {
  if (!pidExists(process_.pid)) return false;
  const stat = readStat(process_.pid);
  if (stat === undefined) return true;
  if (stat.state === 'Z' || stat.state === 'X') return false;
  return process_.startTime === undefined || process_.startTime === stat.startTime;
}

function pidExists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

function readStat(pid: number): { readonly state: string; readonly startTime: string } | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return undefined;
  }
  // Fields 3 (state) and 22 (start time) of proc(5), counted after the name, which may hold spaces and brackets.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state, startTime] = [fields[0], fields[19]];
  return state === undefined || startTime === undefined ? undefined : { state, startTime };
}
