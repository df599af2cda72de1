import { once } from 'node:events';
import { realpathSync } from 'node:fs';
import { relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Clock } from '../../engine/clock.js';
import { startCommand } from './child.js';
import type { LoadFailure, LoadOutcome, Project, ProjectOptions } from './project.js';
import type { Guard } from './stand.js';

/** The hidden command that loads a project, and tells its parent. */
export const LOAD_COMMAND = 'dev-load';

/** A configuration that takes longer waits for something that doesn't come. */
const LONGEST_LOAD_SECONDS = 60;

export interface LoadProps extends ProjectOptions {
  readonly guard: Guard;
  readonly clock: Clock;
  /** The folder of the project. */
  readonly root: string;
  /** Ends it before its time. */
  readonly signal: AbortSignal;
}

/** A project, or the lines that say why it can't be loaded. */
export type LoadResult = { readonly project: Project } | { readonly problems: readonly string[] };

/**
 * Loads a project in a process of its own, so that its code can be loaded again and again.
 * @returns no problems where it was ended
 */
export async function loadProject({
  guard,
  clock,
  root,
  signal,
  ...options
}: LoadProps): Promise<LoadResult> {
  const isOver = (): boolean => signal.aborted;
  if (isOver()) return { problems: [] };
  const child = startCommand(argumentsOf(options), ['ignore', 'ignore', 'pipe', 'ipc'], guard);
  let printed = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    printed += chunk.toString();
  });
  const told: { outcome?: LoadOutcome; isLate: boolean } = { isLate: false };
  child.on('message', (message) => {
    told.outcome = message as LoadOutcome;
    // Whatever the author's code has begun, nothing more is wanted of it; a failure is printed yet.
    if ('project' in told.outcome) child.kill('SIGKILL');
  });
  const timer = clock.setTimer(LONGEST_LOAD_SECONDS * 1000, () => {
    told.isLate = true;
    child.kill('SIGKILL');
  });
  const stop = (): void => void child.kill('SIGKILL');
  signal.addEventListener('abort', stop);
  const [exitCode, by] = (await once(child, 'close').finally(() => {
    timer.cancel();
    signal.removeEventListener('abort', stop);
  })) as [number | null, NodeJS.Signals | null];
  const { outcome, isLate } = told;
  if (outcome && 'project' in outcome) return outcome;
  if (isOver()) return { problems: [] };
  if (isLate) return { problems: [`Loading takes longer than ${LONGEST_LOAD_SECONDS} s, and was given up`] };
  if (outcome) return { problems: linesOf(outcome, printed.trim(), root) };
  const how =
    by === null ? `with exit code ${exitCode ?? '?'}: take out what calls process.exit` : `by ${by}`;
  return { problems: [`It ends the process, ${how}`, ...printed.split('\n').filter((line) => line !== '')] };
}

/** Where Node alone knows the place, it is in what it has printed. */
function linesOf(outcome: { readonly failure: LoadFailure }, printed: string, root: string): string[] {
  const { message, stack } = outcome.failure;
  // Node names modules by where links lead.
  const [real, here] = [realpathSync(root), realpathSync('.')];
  const texts = stack === undefined ? [] : [stack, printed];
  const place = texts.map((text) => placeOf(text, real, here)).find((found) => found !== undefined);
  const [first = '', ...rest] = message.split('\n');
  return [place === undefined ? first : `${place}: ${first}`, ...rest];
}

function argumentsOf({ samples, config, kinds }: ProjectOptions): string[] {
  return [
    LOAD_COMMAND,
    ...(config === undefined ? [] : ['--config', config]),
    ...(kinds ? ['--kinds', kinds.join()] : []),
    '--',
    ...samples,
  ];
}

/** Where Node says at the top of a stack that a text can't be read: `file:///work/kind.ts:3` or `/work/kind.ts:3`. */
const TOP = /^(file:\/\/)?(\/.+):(\d+)$/m;
/** A frame of a stack. */
const FRAME = /^at (?:.*\(|async )?((?:file:\/\/)?\/[^()\n]+?):(\d+):\d+\)?$/;

/**
 * Where in a project an error comes from, as `src/kind.ts:3`: of a text that can't be read, its line; of what was thrown, the
 * innermost line that is the author's.
 * @param stack of the error, or what Node prints of it when nobody catches it
 * @param root the folder of the project, without links in its path
 * @param from the folder from which the file is named
 * @returns undefined where nothing of it leads there
 */
export function placeOf(stack: string, root: string, from = root): string | undefined {
  const [first = ''] = stack.split('\n');
  const top = TOP.exec(first);
  if (top && isOwn(top[2] ?? '', root)) return shown(top[2] ?? '', top[3] ?? '', from);
  for (const line of stack.split('\n')) {
    const frame = FRAME.exec(line.trim());
    if (!frame) continue;
    const path = pathOf(frame[1] ?? '');
    if (isOwn(path, root)) return shown(path, frame[2] ?? '', from);
  }
  return undefined;
}

function pathOf(place: string): string {
  return place.startsWith('file://') ? fileURLToPath(place) : place;
}

function isOwn(path: string, root: string): boolean {
  return path.startsWith(root + sep) && !path.slice(root.length).includes(`${sep}node_modules${sep}`);
}

function shown(path: string, line: string, from: string): string {
  return `${relative(from, path)}:${line}`;
}
