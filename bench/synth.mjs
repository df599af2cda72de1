// How long `reconstruct synth` takes for many custom resources, beside the least that it could do: reading the same
// YAML and writing the same manifests with the YAML library alone. Whole processes, in turn, medians of five.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments } from 'yaml';

const COUNT = 10_000;
const ROUNDS = 5;
const root = fileURLToPath(new URL('..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'bench-synth-'));

try {
  const input = join(folder, 'in.yaml');
  const output = join(folder, 'out.json');
  writeFileSync(input, Array.from({ length: COUNT }, (_, index) => customResource(index)).join('---\n'));
  const synth = [join(root, 'lib/cli/main.js'), 'synth', input];
  const manifests = parseAllDocuments(timed(synth).stdout.toString()).map((document) => document.toJS());
  writeFileSync(output, JSON.stringify(manifests));
  const yamlOnly = [join(root, 'bench/yaml-only.mjs'), input, output];
  const rounds = Array.from({ length: ROUNDS }, () => [timed(synth).seconds, timed(yamlOnly).seconds]);
  const [ours, theirs, ratio] = [
    median(rounds.map(([a]) => a)),
    median(rounds.map(([, b]) => b)),
    median(rounds.map(([a, b]) => a / b)),
  ];
  console.log(
    `Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model}; ${COUNT} AppServices, ${ROUNDS} rounds`,
  );
  console.log(`reconstruct synth      ${ours.toFixed(2)} s`);
  console.log(`reading and writing    ${theirs.toFixed(2)} s`);
  console.log(`ratio                  ${ratio.toFixed(2)}`);
} finally {
  rmSync(folder, { recursive: true });
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

function timed(args) {
  const start = performance.now();
  const limits = { maxBuffer: 2 ** 30, timeout: 300_000, killSignal: 'SIGKILL' };
  const { status, stdout, stderr, error } = spawnSync(process.execPath, args, limits);
  if (status !== 0) throw new Error(`${args.join(' ')} failed: ${error?.message ?? ''}\n${stderr}`);
  return { stdout, seconds: (performance.now() - start) / 1000 };
}

function median(values) {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
}
