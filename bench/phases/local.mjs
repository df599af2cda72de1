// What needs no cluster: the start of the command, rendering, synth.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { COMMAND, ours } from '../support/operators.mjs';
import { median, root } from '../support/util.mjs';

const noted = (figures) => (phase, figure, value, unit, bar) =>
  figures.note(ours.name, phase, figure, value, unit, bar);

/** Until `--help` is there, beside Node alone; in turn, medians. */
export function help(figures) {
  const note = noted(figures);
  const rounds = Array.from({ length: 15 }, () => [timed(['-e', '0']), timed([COMMAND, '--help'])]);
  const [node, command] = [0, 1].map((index) => median(rounds.map((round) => round[index])));
  note('the command', '`node -e 0`', node * 1000, 'ms');
  note('the command', '`--help`', command * 1000, 'ms', 200);
}

/** Rendering alone, in a process of its own. */
export function rendering(figures) {
  const note = noted(figures);
  const { stdout } = ended(['--expose-gc', join(root, 'bench/render.mjs')]);
  const { milliseconds, heapGrowthMiB, count } = JSON.parse(stdout);
  note('rendering', 'per AppService, after warm-up', milliseconds, 'ms', 0.1);
  note('rendering', `growth of the heap over ${count}`, heapGrowthMiB, 'MiB', 1);
}

/** The least that synth could do: read the same YAML and write as much with the YAML library alone. */
const YARDSTICK = `
  import { readFileSync } from 'node:fs';
  import { parseAllDocuments, stringify } from 'yaml';
  const documents = (file) => parseAllDocuments(readFileSync(file, 'utf8')).map((document) => document.toJS());
  const manifests = JSON.parse(readFileSync(process.argv[2], 'utf8'));
  documents(process.argv[1]);
  process.stdout.write(manifests.map((manifest) => '---\\n' + stringify(manifest)).join(''));`;

/** Whole processes, in turn, medians. */
export async function synth(figures) {
  const note = noted(figures);
  const { parseAllDocuments } = await import('yaml');
  const folder = mkdtempSync(join(tmpdir(), 'bench-synth-'));
  try {
    const [input, output] = ['in.yaml', 'out.json'].map((file) => join(folder, file));
    writeFileSync(input, Array.from({ length: 10_000 }, (_, index) => customResource(index)).join('---\n'));
    const command = [join(root, 'lib/cli/main.js'), 'synth', input];
    const manifests = parseAllDocuments(ended(command).stdout.toString()).map((each) => each.toJS());
    writeFileSync(output, JSON.stringify(manifests));
    const yardstick = ['--input-type=module', '-e', YARDSTICK, input, output];
    const rounds = Array.from({ length: 5 }, () => [timed(command), timed(yardstick)]);
    note('synth', '10,000 AppServices', median(rounds.map(([a]) => a)), 's');
    note('synth', 'ratio to the YAML library alone', median(rounds.map(([a, b]) => a / b)));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function customResource(index) {
  return `apiVersion: kosmos.io/v1
kind: AppService
metadata:
  name: app-${index}
  namespace: team-${index % 50}
spec:
  size: ${index % 5}
  image: registry.example.com/app:${index}
  ports:
    - { name: http, port: 80, targetPort: 8080 }
    - { name: dns, port: 53, protocol: UDP }
  envs:
    - { name: INDEX, value: "${index}" }
  resources:
    requests: { cpu: 100m, memory: 128Mi }
`;
}

/** Seconds that a Node takes. */
function timed(args) {
  const start = performance.now();
  ended(args);
  return (performance.now() - start) / 1000;
}

function ended(args) {
  const limits = { cwd: root, maxBuffer: 2 ** 30, timeout: 300_000, killSignal: 'SIGKILL' };
  const { stdout, status, stderr, error } = spawnSync(process.execPath, args, limits);
  if (status !== 0) throw new Error(`${args.join(' ')} failed: ${error?.message ?? ''}\n${stderr}`);
  return { stdout };
}
