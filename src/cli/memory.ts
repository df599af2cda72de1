import { setFlagsFromString } from 'node:v8';

/**
 * Keeps V8's young generation at the size that it starts with, 2 MiB, instead of letting a burst grow it to 32 MiB
 * that it then holds on to. What a controller allocates lives for one event or for as long as its object does, so a
 * small young generation costs it next to nothing.
 *
 * `--max-semi-space-size`, the flag meant for this, is read only when a process starts, and a command can't choose
 * the flags that it is started with. The growth factor is read whenever the young generation would grow. Whoever
 * sets a size of their own, in NODE_OPTIONS or on Node's command line, keeps it.
 */
export function keepYoungGenerationSmall(): void {
  const chosen = [...process.execArgv, process.env.NODE_OPTIONS ?? ''];
  if (chosen.some((option) => /semi[-_]space/.test(option))) return;
  setFlagsFromString('--semi-space-growth-factor=1');
}
