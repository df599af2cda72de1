// What needs no cluster.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { COMMAND } from '../support/controller.mjs';
import { median, root } from '../support/util.mjs';

const ROUNDS = 15;
/** Of one program. */
const LIMIT_MINUTES = 15;

/** Until `--help` is there, beside Node alone; in turn, medians. */
export function help(note) {
  const rounds = Array.from({ length: ROUNDS }, () => [timed(['-e', '0']), timed([COMMAND, '--help'])]);
  const [node, ours] = [0, 1].map((index) => median(rounds.map((round) => round[index])));
  note('the command', '`node -e 0`', node, 'ms');
  note('the command', '`--help`', ours, 'ms', 200);
  note('the command', 'ratio', median(rounds.map(([a, b]) => b / a)));
}

/** Rendering alone, in a process of its own. */
export function rendering(note) {
  const { stdout } = ended(['--expose-gc', join(root, 'bench/render.mjs')]);
  const { milliseconds, heapGrowthMiB, count } = JSON.parse(stdout);
  note('rendering', 'per AppService, after warm-up', milliseconds, 'ms', 0.1);
  note('rendering', `growth of the heap over ${count}`, heapGrowthMiB, 'MiB', 1);
}

export function synth(note) {
  process.stderr.write(`bench/synth.mjs, at most ${LIMIT_MINUTES} min\n`);
  const { stdout } = ended([join(root, 'bench/synth.mjs')]);
  const of = (label) => Number(new RegExp(`^${label}\\s+([\\d.]+)`, 'm').exec(stdout)?.[1]);
  note('synth', '10,000 AppServices', of('reconstruct synth'), 's');
  note('synth', 'ratio to the YAML library alone', of('ratio'));
}

function timed(args) {
  const start = performance.now();
  ended(args);
  return performance.now() - start;
}

function ended(args) {
  const limits = { timeout: LIMIT_MINUTES * 60_000, killSignal: 'SIGKILL' };
  const { stdout, status, stderr, error } = spawnSync(process.execPath, args, limits);
  if (status !== 0) throw new Error(`${args.join(' ')} failed: ${error?.message ?? ''}\n${stderr}`);
  return { stdout };
}
