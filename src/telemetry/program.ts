import type { ChildProcess } from 'node:child_process';

interface ProgramEnd {
  /** Null where a signal has ended it. */
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

interface WaitProps {
  /** Names the program in lines and errors, e.g. `go env GOVERSION`. */
  readonly what: string;
  /** Sentence on what to do where it hangs. */
  readonly remedy: string;
  /** Takes a line after each silence of `sayMilliseconds`, 10,000 by default. @default - standard error */
  readonly say?: (line: string) => void;
  readonly sayMilliseconds?: number;
  /** Silence after which it is killed. @default 300000 */
  readonly limitMilliseconds?: number;
}

/**
 * Waits for the end of a program, and kills one that gives no output on its pipes for too long.
 *
 * @returns once its pipes are closed too
 * @throws Error where it can't be started or its signal aborts; where it is silent for too long, with the remedy. It is killed then.
 */
export async function programEnded(
  child: ChildProcess,
  {
    what,
    remedy,
    say = (line) => void process.stderr.write(`${line}\n`),
    sayMilliseconds = 10_000,
    limitMilliseconds = 300_000,
  }: WaitProps,
): Promise<ProgramEnd> {
  const pipes = [child.stdout, child.stderr];
  const { promise, resolve, reject } = Promise.withResolvers<ProgramEnd>();
  const seconds = (milliseconds: number): number => Math.round(milliseconds / 1000);
  let heard = performance.now();
  const line = setInterval(() => {
    const silent = performance.now() - heard;
    if (silent >= sayMilliseconds)
      say(`waiting for ${what}: no output for ${seconds(silent)} s, at most ${limitMilliseconds / 1000} s`);
  }, sayMilliseconds);
  const limit = setTimeout(() => {
    reject(new Error(`${what} gave no output for ${seconds(limitMilliseconds)} s and was killed; ${remedy}`));
  }, limitMilliseconds);
  for (const pipe of pipes)
    pipe?.on('data', () => {
      heard = performance.now();
      limit.refresh();
    });
  child.once('error', reject).once('close', (code, signal) => {
    resolve({ code, signal });
  });
  try {
    return await promise;
  } catch (error) {
    child.kill('SIGKILL');
    // Its own children may hold them open.
    for (const pipe of pipes) pipe?.destroy();
    throw error;
  } finally {
    clearInterval(line);
    clearTimeout(limit);
  }
}
