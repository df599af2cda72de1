// Records what an operator does on a real control plane, draws it as docs/recording.svg, and shows the last tree of
// `reconstruct status` in the README: `npm run record`.
import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';
import { eventually, withSandbox } from '../lib/testing/index.js';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const command = join(root, 'lib/bundle/reconstruct.mjs');
const sample = 'appservice-sample';
const installed = ['install', '--apply', '--kinds', 'appservice'];
const lease = ['--leader-elect', '--leader-election-namespace', 'reconstruct-system'];
const ready = ['wait', '--for=condition=Ready', `appservices.kosmos.io/${sample}`, '--timeout=60s'];

/** Steps: a comment, or a command and, unseen, what has to be so before the next one. */
const steps = [
  ['# An AppService becomes a Deployment and a Service.'],
  ['cat examples/appservice-sample.yaml'],
  ['kubectl apply -f examples/appservice-sample.yaml', kubectl(...ready)],
  ['kubectl get appservices.kosmos.io,deployments,services,pods'],
  ['# Another writer changes the Deployment: drift of the fields that the construct sets is corrected.'],
  [`kubectl set image deployment/${sample} ${sample}=nginx:1.25`, kubectl('get', 'events'), /DriftCorrected/],
  [`kubectl get deployment ${sample} -o jsonpath='{..image}{"\\n"}'`],
  ['# An image that can’t be pulled: the status says so, and the Pods that work stay.'],
  [
    `kubectl patch appservices.kosmos.io ${sample} --type=merge -p '{"spec":{"image":"sandbox.invalid/no-image:1"}}'`,
    kubectl('get', 'appservices.kosmos.io', sample, '-o', 'jsonpath={.status.conditions}'),
    /ImagePullBackOff/,
  ],
  [`reconstruct status AppService/${sample}`],
];

const columns = 110;
const rows = 32;
/** How long a command and its output are left on the screen before the next, in seconds. */
const readingSeconds = (lines) => 1.5 + lines / 5;

await withSandbox({}, async ({ sandbox }) => {
  const env = {
    ...process.env,
    ...{
      KUBECONFIG: sandbox.adminKubeconfig,
      COLUMNS: String(columns),
      FORCE_COLOR: '1',
      NO_COLOR: undefined,
    },
    PATH: [dirname(sandbox.kubectlPath), process.env.PATH].join(delimiter),
  };
  await output([process.execPath, command, ...installed], env);
  // Nothing runs in the Pods of this control plane, so the operator runs here.
  const run = ['run', '--kinds', 'appservice', ...lease];
  const ports = ['--metrics-bind-address', '0', '--health-bind-address', '0'];
  const operator = spawn(process.execPath, [command, ...run, ...ports], { cwd: root, env, stdio: 'ignore' });
  try {
    const recording = await recorded(env);
    writeFileSync(join(root, 'docs/recording.svg'), drawing(recording));
    showInReadme(treeOf(recording.lines));
  } finally {
    operator.kill();
  }
});

/** Runs the steps. Returns the screen's lines, each with the second in which it appears, and the length of the whole. */
async function recorded(env) {
  const lines = [];
  let seconds = 0;
  const print = (...texts) => lines.push(...texts.map((text) => ({ text, seconds })));
  for (const [typed, until, pattern] of steps) {
    if (typed.startsWith('#')) {
      print('', `\u001b[2m${typed}\u001b[0m`);
      seconds += readingSeconds(1);
      continue;
    }
    print(`\u001b[32m$\u001b[0m \u001b[1m${typed}\u001b[0m`);
    const start = performance.now();
    const text = await output(
      ['sh', '-c', typed.replace(/^reconstruct/, `'${process.execPath}' '${command}'`)],
      env,
    );
    seconds += Math.max(0.5, (performance.now() - start) / 1000);
    const shown = text.trimEnd().split('\n');
    print(...shown.flatMap(wrapped));
    seconds += readingSeconds(shown.length);
    if (until)
      await eventually(
        async () => {
          const answer = await output(until, env);
          if (pattern && !pattern.test(answer)) throw new Error(answer);
        },
        { deadlineMilliseconds: 60_000 },
      );
  }
  return { lines, seconds: seconds + 3 };
}

/** Returns the tree that the last command has printed, without colours. */
function treeOf(lines) {
  const texts = lines.map(({ text }) => stripVTControlCharacters(text));
  const tree = texts.slice(texts.findLastIndex((text) => text.startsWith('$ ')) + 1);
  return tree
    .slice(
      0,
      tree.findIndex((text) => text.trim() === 'Events'),
    )
    .join('\n');
}

function showInReadme(tree) {
  const file = join(root, 'README.md');
  const text = readFileSync(file, 'utf8');
  writeFileSync(file, text.replace(/^```text\n[^]*?^```/m, `\`\`\`text\n${tree}\n\`\`\``));
}

function kubectl(...args) {
  return ['kubectl', ...args];
}

/** Returns what a program prints. */
async function output([program, ...args], env) {
  const child = spawn(program, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (text += chunk));
  const code = await new Promise((resolve, reject) => child.once('error', reject).once('close', resolve));
  if (code !== 0) throw new Error(`${[program, ...args].join(' ')} ended with ${code}:\n${text}`);
  // The lease names the machine.
  return text.replaceAll(`${hostname()}_`, 'laptop_');
}

/** Cuts a line as a terminal does. */
function wrapped(line) {
  if (stripVTControlCharacters(line).length <= columns) return [line];
  const plain = stripVTControlCharacters(line);
  return plain.match(new RegExp(`.{1,${columns}}`, 'g'));
}

/** Draws the screen. Lines come in from below, which takes one animation; without it, the last screen is seen. */
function drawing({ lines, seconds }) {
  const [width, height] = [8, 18];
  const top = (count) => (rows - count) * height;
  const moments = [...new Map(lines.map((line, index) => [line.seconds, index + 1]))];
  const frames = moments.map(
    ([at, count]) => `${percent(at / seconds)}{transform:translateY(${top(count)}px)}`,
  );
  const [w, h] = [columns * width + 32, rows * height + 32];
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${w} ${h}" role="img">`,
    '<title>An AppService is applied, its Deployment is changed by hand and corrected, an image can’t be pulled</title>',
    '<style>',
    'text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#d5dae3;white-space:pre}',
    '.b{font-weight:bold;fill:#fff}.d{fill:#8a94a6}.r{fill:#ff7b72}.g{fill:#56d364}.y{fill:#e3b341}.c{fill:#76c7ff}',
    `g{transform:translateY(${top(lines.length)}px);animation:run ${seconds.toFixed(1)}s step-end infinite}`,
    `@keyframes run{0%{transform:translateY(${rows * height}px)}${frames.join('')}}`,
    '@media (prefers-reduced-motion:reduce){g{animation:none}}',
    '</style>',
    `<rect width="${w}" height="${h}" rx="8" fill="#0f1520"/>`,
    `<svg x="16" y="16" width="${w - 32}" height="${h - 32}"><g>`,
    ...lines.map(({ text }, index) =>
      spans(text)
        .map(
          ({ at, part, style }) =>
            `<text x="${at * width}" y="${index * height + 13}" textLength="${part.length * width}"${style && ` class="${style}"`}>${escaped(part)}</text>`,
        )
        .join(''),
    ),
    '</g></svg>',
    '</svg>',
  ].join('\n')}\n`;
}

/** Parts of a line by their looks, each with its column. */
function spans(text) {
  const classes = { 1: 'b', 2: 'd', 31: 'r', 32: 'g', 33: 'y', 36: 'c', 90: 'd' };
  const found = [];
  let at = 0;
  let style = '';
  for (const [, codes, part] of text.matchAll(/(?:\u001b\[([\d;]*)m)|([^\u001b]+)/g)) {
    if (part === undefined) style = classes[codes.split(';').at(-1)] ?? '';
    else {
      const start = part.length - part.trimStart().length;
      if (part.trim()) found.push({ at: at + start, part: part.trim(), style });
      at += part.length;
    }
  }
  return found;
}

function percent(share) {
  return `${(share * 100).toFixed(2)}%`;
}

function escaped(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
