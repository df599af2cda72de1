// Runs the project's commands on a machine that has any Node 20 or newer: installs what is missing, from the lock
// file, then goes on under the Node that the lock file brings. Uses nothing but Node itself.
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { linkBin } from './link-bin.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
/** What undici 8 and client-node 2 need. */
const NEEDED = [22, 19];
/** How long the dependencies may take. */
const INSTALL_MINUTES = 20;

const bin = (name, file) => join(root, 'node_modules', name, file);
const tsc = [bin('typescript', 'bin/tsc')];
const vitest = [bin('vitest', 'vitest.mjs'), 'run'];

const compile = ['Compiling', [...tsc, '-b', 'tsconfig.json', 'sandbox', 'src/testing']];
/** tsc takes longer than the first screen of the demo may, unless it has compiled before. */
const compileForDemo = existsSync(join(root, 'lib/.src.tsbuildinfo'))
  ? compile
  : ['Compiling', ['scripts/transpile.mjs']];
const compileSource = ['Compiling', [...tsc, '-b', 'tsconfig.json']];
const bundle = ['Bundling', ['scripts/bundle.mjs']];
/** As it is published, for the tests of what ships. */
const pack = ['Packing', ['scripts/package.mjs', '--out', 'lib/packed/package']];
const command = 'lib/cli/main.js';
/** @default - the one that `reconstruct install` names */
const image = process.env.IMAGE ? ['--image', process.env.IMAGE] : [];

/** The suites of vitest.config.ts that a task runs, one group after another. */
const suites = {
  test: [['unit', 'mocks', 'journeys']],
  'test:full': [['packed', 'full'], ['scenarios'], ['alone']],
  'test:soak': [['soak']],
};

/** Each task is a list of programs, run one after another; what the user adds goes to the last. */
const tasks = {
  build: [compile, bundle],
  bundle: [compile, bundle],
  package: [compile, bundle, ['Packing', ['scripts/package.mjs']]],
  crds: [compileSource, ['Writing the CRD', ['scripts/crds.mjs']]],
  'image:bundle': [compileSource, ['Bundling', ['scripts/bundle.mjs', '--image']]],
  'image:build': [['Building the image', ['scripts/image.mjs', 'build']]],
  'image:push': [['Building and pushing the image', ['scripts/image.mjs', 'push']]],
  deploy: [compileSource, ['', [command, 'install', '--apply', ...image]]],
  undeploy: [compileSource, ['', [command, 'uninstall']]],
  demo: [compileForDemo, ['', ['lib/sandbox/demo/main.js']]],
  sandbox: [compile, ['', ['lib/sandbox/main.js']]],
  test: [compile, bundle, pack],
  'test:full': [compile, bundle, pack],
  'test:soak': [compile, bundle, pack],
  'test:kubernetes': [compile, bundle, pack, ['', ['lib/sandbox/test-kubernetes.js']]],
  bench: [compile, bundle, ['', ['bench/main.mjs']]],
  docs: [['', ['scripts/site/main.mjs']]],
  record: [compile, bundle, ['Recording', ['scripts/record.mjs']]],
  typecheck: [['Checking types', [...tsc, '-b', 'tsconfig.json', 'sandbox', 'src/testing', 'test']]],
  // The examples have their types from what is compiled.
  lint: [
    compile,
    ['Linting', [bin('eslint', 'bin/eslint.js'), '.', '--max-warnings', '0']],
    ['Checking the format', [bin('prettier', 'bin/prettier.cjs'), '--check', '--log-level', 'warn', '.']],
  ],
  format: [['Formatting', [bin('prettier', 'bin/prettier.cjs'), '--write', '--log-level', 'warn', '.']]],
};

await main(process.argv[2], process.argv.slice(3));

async function main(name, args) {
  const steps = tasks[name] && [...tasks[name], ...testSteps(suites[name] ?? [], args)];
  if (!steps) fail(`Unknown task ${name}; there are ${Object.keys(tasks).join(', ')}`);
  if (!installed()) {
    say('Installing the dependencies from package-lock.json (once; a minute or less)');
    // A registry that doesn't answer fails in some minutes, with its name, instead of a quarter of an hour.
    const patience = ['--fetch-timeout=60000', '--fetch-retries=2'];
    const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error', ...patience];
    await run(...npm(), ['ci', ...flags], endInstallation);
  }
  const node = projectNode();
  for (const [index, [what, command]] of steps.entries()) {
    if (what) say(what);
    await run(node, command, index === steps.length - 1 ? args : []);
    if ([compile, compileForDemo].includes(steps[index])) linkBin();
  }
}

/** What the user names, such as a file, is looked for in all groups at once. */
function testSteps(groups, args) {
  if (args.some((arg) => arg.startsWith('--project'))) return groups.slice(0, 1).map(() => ['', vitest]);
  const chosen = args.length > 0 && groups.length > 0 ? [groups.flat()] : groups;
  return chosen.map((group) => ['', [...vitest, ...group.flatMap((suite) => ['--project', suite])]]);
}

/** npm notes what it has installed: every package of the lock file has to be there, optional ones as far as they fit. */
function installed() {
  const note = join(root, 'node_modules/.package-lock.json');
  if (!existsSync(note)) return false;
  const wanted = packagesOf(join(root, 'package-lock.json'));
  const present = packagesOf(note);
  return Object.entries(wanted).every(
    ([path, { version, optional }]) =>
      !path.startsWith('node_modules/') ||
      present[path]?.version === version ||
      (optional && present[path] === undefined),
  );
}

function packagesOf(lockFile) {
  return JSON.parse(readFileSync(lockFile, 'utf8')).packages;
}

/** The npm that runs this script, where there is one. */
function npm() {
  const script = process.env.npm_execpath;
  return script?.endsWith('.js') ? [process.execPath, [script]] : ['npm', []];
}

function projectNode() {
  const own = bin(`node-${process.platform}-${process.arch}`, 'bin/node');
  if (existsSync(own)) return own;
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > NEEDED[0] || (major === NEEDED[0] && minor >= NEEDED[1])) return process.execPath;
  const needed = `Node ${NEEDED.join('.')} or newer is needed, this is ${process.versions.node}`;
  return fail(`${needed}: install Node 24 from https://nodejs.org`);
}

/** Says each minute how long npm has taken, and ends it in time. */
function endInstallation(child, minutes) {
  say(`waiting for npm ci: ${minutes} min, at most ${INSTALL_MINUTES} min`);
  if (minutes < INSTALL_MINUTES) return;
  child.kill('SIGKILL');
  fail('npm ci was killed: see that the registry (npm config get registry) answers, and run this again');
}

/**
 * Ends with the program's own status; signals from the terminal reach it directly, others are passed on.
 * @param eachMinute takes the process, and for how many minutes it runs; without it, the program itself ends in time
 */
function run(command, first, rest, eachMinute = () => {}) {
  return new Promise((resolve) => {
    const path = [join(root, 'node_modules/.bin'), process.env.PATH].join(
      process.platform === 'win32' ? ';' : ':',
    );
    const child = spawn(command, [...first, ...rest], {
      cwd: root,
      stdio: 'inherit',
      env: { ...process.env, PATH: path },
    });
    let minutes = 0;
    const clock = setInterval(() => eachMinute(child, ++minutes), 60_000);
    const passOn = (signal) => child.kill(signal);
    const ignore = () => {};
    process.on('SIGTERM', passOn).on('SIGINT', ignore);
    child.on('error', (error) => fail(`${command} can't be started: ${error.message}`));
    child.on('exit', (code, signal) => {
      clearInterval(clock);
      process.off('SIGTERM', passOn).off('SIGINT', ignore);
      if (code !== 0) process.exit(code ?? (signal === 'SIGINT' ? 130 : 143));
      resolve();
    });
  });
}

function say(text) {
  process.stderr.write(`> ${text}\n`);
}

function fail(text) {
  process.stderr.write(`${text}\n`);
  process.exit(1);
}
