// Produces what the README and the page on upgrades show, by real runs: `npm run record` draws the picture and writes the output below
// each command that stands in a block of `text`; `npm run record -- --check` fails where it differs from what is there.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify, styleText } from 'node:util';
import { textOf } from '../lib/cli/tree/text.js';
import { eventually, withSandbox } from '../lib/testing/index.js';
import { drawPicture } from './picture.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const reconstruct = [process.execPath, join(root, 'lib/bundle/reconstruct.mjs')];
const upgrades = readFileSync(join(root, 'docs/upgrades.md'), 'utf8');
/** The construct of the picture, which replaces that of a new project. */
const construct = readFileSync(join(root, 'examples/guestbook/construct.ts'), 'utf8');
/** Characters in a line of the picture, so that a phone shows it, and of an output. */
const [PICTURE_COLUMNS, COLUMNS] = [50, 96];

/** Guestbooks that the cluster has beside the sample, by namespace. */
const guestbooks = { shop: ['reviews', 'wishes'], team: ['farewell'] };
/** The next version of the construct. */
const hardened = [
  'containers: [container]',
  'securityContext: { runAsNonRoot: true }, containers: [container]',
];
/** A status that is right only as long as Pods can run. */
const alwaysOpen = [
  '\n});',
  "\n  status: () => ({ readiness: { phase: 'ready', reason: 'Open', message: 'Guests may write' } }),\n});",
];

/** Lists what is held. */
const PENDING = 'npx reconstruct release -A --dry-run';

/** Operators that run. */
const running = new Set();
const folder = mkdtempSync(join(tmpdir(), 'reconstruct-record-'));
try {
  const files = await recorded();
  if (process.argv.includes('--check')) check(files);
  else for (const [file, text] of Object.entries(files)) writeFileSync(join(root, file), text);
} finally {
  for (const child of running) child.kill('SIGKILL');
  rmSync(folder, { recursive: true });
}

/** Returns the content of each file that is made, by its path. */
async function recorded() {
  const project = await initProject();
  const { kind } = await import(join(project, 'src/guestbook/kind.ts'));
  const files = await withSandbox({ kinds: [kind] }, async ({ sandbox, run }) => {
    const env = {
      ...{ KUBECONFIG: sandbox.adminKubeconfig, KUBECACHEDIR: join(folder, 'cache') },
      PATH: [dirname(sandbox.kubectlPath), process.env.PATH].join(delimiter),
    };
    const typed = (words, options) => output(words, { cwd: project, env, ...options });
    await run([kind]);
    const picture = await recordedPicture(typed);
    const outputs = await recordedDiff(project, typed);
    return { picture, outputs };
  });
  const ofUpgrade = await recordedUpgrade(project, kind);
  const [first, second] = ofUpgrade[PENDING].split('\n');
  const pending = { [PENDING]: `${first}\n${second}\n...\n` };
  const outputs = { ...files.outputs, ...pending, ...(await recordedSweep(project)) };
  return {
    'README.md': withOutputs('README.md', outputs),
    'docs/upgrades.md': withOutputs('docs/upgrades.md', ofUpgrade),
    ...files.picture,
  };
}

/** Follows the page on upgrades. @returns the output of each command */
async function recordedUpgrade(project, kind) {
  writeFileSync(join(project, 'src/guestbook/construct.ts'), construct);
  return withSandbox({ kinds: [kind] }, async ({ sandbox }) => {
    const env = {
      ...{ KUBECONFIG: sandbox.adminKubeconfig, KUBECACHEDIR: join(folder, 'upgrade-cache') },
      PATH: [dirname(sandbox.kubectlPath), process.env.PATH].join(delimiter),
    };
    const typed = (words, options) => output(words, { cwd: project, env, ...options });
    const outputs = {};
    const shell = (command) => [
      ...['sh', '-c'],
      command.replaceAll('npx reconstruct', reconstruct.map((word) => `'${word}'`).join(' ')),
    ];
    const shown = async (command, { codes, pattern = / / } = {}) => {
      if (!upgrades.includes(command)) throw new Error(`docs/upgrades.md doesn't have ${command}`);
      const run = (words) => typed(words, { ...(codes && { codes }) });
      outputs[command] = await until(run, shell(command), pattern);
    };
    const git = (...words) =>
      typed([
        'git',
        '-c',
        'user.name=A',
        '-c',
        'user.email=a@example.com',
        '-c',
        'commit.gpgsign=false',
        ...words,
      ]);
    await git('init', '--quiet');
    await git('add', '.');
    await git('commit', '--quiet', '--message', 'Version 1');
    await typed(['kubectl', 'create', 'namespace', 'reconstruct-system']);
    await typed(['kubectl', 'apply', '-f', 'samples/guestbook.yaml']);
    await moreGuestbooks(project, typed);
    const first = await operator('npx reconstruct run', { project, env });
    await allReady(typed, 'guestbooks');
    await first.stop();

    edit(join(project, 'src/guestbook/construct.ts'), hardened);
    await shown('npx reconstruct diff --since HEAD samples', { codes: [1] });
    await shown('npx reconstruct diff --all -A', { codes: [1] });
    const holding = await operator('npx reconstruct run --on-upgrade hold', { project, env });
    await shown(PENDING, { pattern: /(?:rolls its pods[^]*){4}/ });
    const status = 'npx reconstruct status guestbook/hello';
    await shown(status, { pattern: /UpdatePending[^]*└─/ });
    // What follows is of the Deployment, and as before.
    outputs[status] = outputs[status].replace(/^└─[^]*/m, '...\n');
    await shown('npx reconstruct release guestbook/hello');
    await until(typed, [...'kubectl get deployment hello -o yaml'.split(' ')], /runAsNonRoot/);
    await allReady(typed, 'guestbooks');
    await holding.stop();

    await shown('kubectl create quota few --hard=pods=4 -n shop');
    const rolling = await operator(
      'npx reconstruct run --on-upgrade 1 --ready-within 20 --leader-elect --leader-election-namespace reconstruct-system',
      { project, env },
    );
    await shown(
      'kubectl get events -A --field-selector reason=RolloutStopped --no-headers -o custom-columns=:.message',
      {
        pattern: /was ready/,
      },
    );
    await shown('kubectl delete quota few -n shop');
    await shown('npx reconstruct release --resume guestbook', { pattern: /resumed/ });
    for (const [namespace, [name]] of Object.entries(guestbooks))
      await until(
        typed,
        [...`kubectl get deployment ${name} -n ${namespace} -o yaml`.split(' ')],
        /runAsNonRoot/,
      );
    await rolling.stop();
    return outputs;
  });
}

/** Starts an operator by a command of the page on upgrades. @returns how to stop it */
async function operator(command, { project, env }) {
  const [, , ...args] = command.split(' ');
  if (!upgrades.includes(command)) throw new Error(`docs/upgrades.md doesn't have ${command}`);
  const [program, bundle] = reconstruct;
  const ports = ['--metrics-bind-address', '0', '--health-bind-address', '0'];
  const child = spawn(program, [bundle, ...args, ...ports], {
    ...{ cwd: project, stdio: 'ignore', env: { ...process.env, NODE_OPTIONS: '', ...env } },
  });
  running.add(child);
  const ended = once(child, 'exit').finally(() => running.delete(child));
  return {
    stop: async () => {
      child.kill('SIGTERM');
      const [code] = await ended;
      if (code !== 0) throw new Error(`${command} ended with ${code}`);
    },
  };
}

/** Corrects drift of the sample, and draws its status. */
async function recordedPicture(typed) {
  await typed(['kubectl', 'apply', '-f', 'samples/guestbook.yaml']);
  await allReady(typed, 'guestbooks');
  const scale = ['kubectl', 'scale', 'deployment', 'hello', '--replicas=5'];
  await typed(scale);
  await until(typed, ['kubectl', 'get', 'events'], /DriftCorrected/);
  await typed([
    'kubectl',
    'wait',
    '--for=jsonpath={.status.replicas}=2',
    'deployment/hello',
    '--timeout=60s',
  ]);
  await allReady(typed, 'guestbooks');
  // Of one time, so that how long things took doesn't change the picture.
  const time = new Date();
  const status = await typed([...reconstruct, 'status', 'guestbook/hello', '-o', 'json']);
  const { resources } = JSON.parse(status.replaceAll(/"\d{4}-\d\d-\d\dT[\d:.]+Z"/g, JSON.stringify(time)));
  // Of the events of Pods there are too many for a picture.
  const isShown = ({ reason }) => reason === 'DriftCorrected';
  const shown = resources.map((each) => ({ ...each, events: each.events.filter(isShown) }));
  const options = { now: new Date(time.getTime() + 3_000), paint: styleText, width: PICTURE_COLUMNS };
  return drawPicture({
    construct,
    commands: [scale.join(' '), 'reconstruct status'],
    output: textOf({ resources: shown, notes: [] }, options),
    columns: PICTURE_COLUMNS,
  });
}

/** Compares what is live with the next version. */
async function recordedDiff(project, typed) {
  await moreGuestbooks(project, typed);
  await allReady(typed, 'guestbooks');
  edit(join(project, 'src/guestbook/construct.ts'), hardened);
  const diff = await typed([...reconstruct, 'diff', '--all', '-A'], { codes: [1] });
  return { 'npx reconstruct diff --all -A': diff };
}

async function moreGuestbooks(project, typed) {
  const sample = readFileSync(join(project, 'samples/guestbook.yaml'), 'utf8');
  for (const [namespace, names] of Object.entries(guestbooks)) {
    await typed(['kubectl', 'create', 'namespace', namespace]);
    const documents = names.map((name) => sample.replace('name: hello', `name: ${name}`));
    writeFileSync(join(folder, 'more.yaml'), documents.join('\n---\n'));
    await typed(['kubectl', 'apply', '-n', namespace, '-f', join(folder, 'more.yaml')]);
  }
}

/** Sweeps the kind with a wrong status. */
async function recordedSweep(project) {
  writeFileSync(join(project, 'src/guestbook/construct.ts'), construct);
  edit(join(project, 'src/guestbook/kind.ts'), alwaysOpen);
  const checks = ['drift', 'kills', 'status'];
  const sweep = [process.execPath, 'test/guestbook/sweep.ts', ...checks];
  const report = await output(sweep, { cwd: project, env: {}, codes: [1] });
  // Without the lines of progress, and of the failures that of the first sample.
  const [, table, failures = ''] = /^(Guestbook, seed [^]*?)(^status: [^]*)/m.exec(report) ?? [];
  const failure = failures.split('\n\n').find((text) => text.includes('nginx-unprivileged:1.29'));
  if (failure === undefined)
    throw new Error(`The sweep doesn't report a wrong status of the first sample:\n${report}`);
  return { [`npm run sweep -- ${checks.join(' ')}`]: `${table}${failure.trimEnd()}\n...\n` };
}

async function allReady(typed, resource) {
  await typed(['kubectl', 'wait', '--for=condition=Ready', resource, '--all', '-A', '--timeout=60s']);
}

/** Repeats a command until its output matches. @returns that output */
function until(typed, words, pattern) {
  return eventually(
    async () => {
      const text = await typed(words);
      if (!pattern.test(text)) throw new Error(`${words.join(' ')} doesn't print ${pattern}:\n${text}`);
      return text;
    },
    { deadlineMilliseconds: 60_000 },
  );
}

/** Makes the project that the README has its reader make. */
async function initProject() {
  const options = { group: 'web.example.com', children: 'Deployment', package: '0.1.0' };
  const flags = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]);
  await output([...reconstruct, 'init', 'guestbook', ...flags], { cwd: folder, env: {} });
  const project = join(folder, 'guestbook');
  mkdirSync(join(project, 'node_modules'));
  symlinkSync(root, join(project, 'node_modules/cdk8s-reconstruct'));
  for (const name of ['cdk8s', 'constructs'])
    symlinkSync(join(root, 'node_modules', name), join(project, 'node_modules', name));
  writeFileSync(join(project, 'src/guestbook/construct.ts'), construct);
  return project;
}

function edit(file, [before, after]) {
  const text = readFileSync(file, 'utf8');
  if (!text.includes(before)) throw new Error(`${file} doesn't contain ${before}`);
  writeFileSync(file, text.replace(before, after));
}

/** Returns a page with each output below its command. */
function withOutputs(page, outputs) {
  const left = new Set(Object.keys(outputs));
  const known = readFileSync(join(root, page), 'utf8');
  const text = known.replaceAll(/^(```text\n\$ (.*)\n)[^]*?(?=^```$)/gm, (block, start, typed) => {
    left.delete(typed);
    return typed in outputs ? `${start}${outputs[typed].trimEnd()}\n` : block;
  });
  if (left.size > 0)
    throw new Error(`${page} has no block of text that begins with $ ${[...left].join(' or $ ')}`);
  return text;
}

/** Fails where a file differs in more than times and names that are new in each run. */
function check(files) {
  for (const [file, text] of Object.entries(files)) {
    const known = comparable(readFileSync(join(root, file), 'utf8')).split('\n');
    const found = comparable(text).split('\n');
    const line = found.findIndex((each, index) => each !== known[index]);
    if (line >= 0 || known.length !== found.length)
      throw new Error(
        `${file}, line ${line + 1}: ${found[line]} is what a run gives now, not ${known[line]}: "npm run record" writes it`,
      );
  }
}

/** Replaces what each run chooses: times, seeds, and the names of Pods and of what a sweep creates. */
function comparable(text) {
  return text
    .replaceAll(/\b(?:\d+m)?[\d.]+ ?m?s\b|\b\d+m\b/g, 'TIME')
    .replaceAll(/(-[0-9a-f]{8,10})-[a-z0-9]{5}\b/g, '$1-POD')
    .replaceAll(/seed \d+/g, 'seed SEED')
    .replaceAll(/(\bbuild |\brendering |reconstruct\.kosmos\.io\/release: )[0-9a-f]{8}\b/gi, '$1BUILD')
    .replaceAll(/sweep-\w+\/trial-\d+|trial-\d+/g, 'TRIAL')
    .replaceAll(/ x="\d+"| textLength="\d+"/g, '')
    .replaceAll(/ +/g, ' ');
}

/** Returns what a program prints. */
async function output([program, ...args], { cwd, env, codes = [0] }) {
  const options = {
    cwd,
    env: { ...process.env, COLUMNS: String(COLUMNS), NO_COLOR: '1', NODE_OPTIONS: '', ...env },
  };
  const {
    code = 0,
    stdout,
    stderr,
  } = await promisify(execFile)(program, args, options).catch((error) => error);
  if (!codes.includes(code))
    throw new Error(`${[program, ...args].join(' ')} ended with ${code}:\n${stdout}${stderr}`);
  return stdout;
}
