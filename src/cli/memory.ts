/**
 * What a controller allocates lives for one event or as long as its object does. By itself V8 lets the young generation
 * grow to over 100 MiB in a burst of events and keeps most of that, and the old generation to twice of what lives.
 */
const LEAN_FLAGS = ['--max-semi-space-size=4', '--heap-growing-percent=20', '--expose-gc'];

/** Threads of V8 and libuv get memory pools of their own from glibc; what they hold on to adds up to tens of MiB. */
const LEAN_ENV = { MALLOC_ARENA_MAX: '1' };

/** How a process is started: flags of Node, and environment. */
export interface Start {
  readonly flags: readonly string[];
  readonly env: NodeJS.ProcessEnv;
}

/**
 * How a process would be started that holds on to little memory, or `undefined` where this one was, or where a debugger
 * may be attached to it already. Flags and variables that were chosen by somebody, in `NODE_OPTIONS` too, stay as they
 * are.
 */
export function leanStart({ flags, env }: Start): Start | undefined {
  const chosen = [...flags, ...(env.NODE_OPTIONS ?? '').split(' ')].map(optionName);
  if (chosen.some((name) => name.startsWith('--inspect'))) return undefined;
  const missingFlags = LEAN_FLAGS.filter((flag) => !chosen.includes(optionName(flag)));
  const missingEnv = Object.entries(LEAN_ENV).filter(([name]) => env[name] === undefined);
  if (missingFlags.length + missingEnv.length === 0) return undefined;
  return { flags: [...flags, ...missingFlags], env: { ...env, ...Object.fromEntries(missingEnv) } };
}

/**
 * Begins this process anew, in place, with `leanStart`: the same process ID, arguments, streams and environment. V8 and
 * glibc read these settings only when a process starts, and a command can't choose how it is started. To be called
 * before anything is opened. Where the platform has no `execve` it returns, and all works as well with more memory;
 * where `execve` is there and fails, Node aborts.
 */
export function startLean(): void {
  const lean = leanStart({ flags: process.execArgv, env: process.env });
  if (!lean || typeof process.execve !== 'function') return;
  const { execPath, argv } = process;
  process.execve(execPath, [execPath, ...lean.flags, ...argv.slice(1)], lean.env);
}

/** `--max_semi_space_size=4` is `--max-semi-space-size`. */
function optionName(option: string): string {
  return (option.split('=')[0] ?? '').replaceAll('_', '-');
}
