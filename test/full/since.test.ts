import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { repoFolder } from '../../sandbox/paths.js';
import { commandPath, done, run } from '../support/commands.js';
import type { Ran } from '../support/commands.js';
import { eventually } from '../support/cluster.js';
import { bundle, packed } from '../support/operator.js';

const sample = (name: string, spec = '') =>
  `apiVersion: example.com/v1\nkind: Page\nmetadata: { name: ${name}, namespace: shop }\nspec: { image: "web:1"${spec} }\n`;

const services = Array.from(
  { length: 200 },
  (_, index) =>
    `apiVersion: kosmos.io/v1\nkind: AppService\nmetadata: { name: app-${index}, namespace: shop }\nspec: { size: 1, image: "web:1", ports: [{ port: 80 }] }\n`,
).join('---\n');

/** A kind of which a Deployment and a Job are made. @param policy how images are pulled */
const kindFile = (policy: string, selected = 'app') => `
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { defineCrd, defineKind } from 'cdk8s-reconstruct';

const crd = defineCrd({
  group: 'example.com', kind: 'Page', description: 'A page.',
  spec: { type: 'object', properties: { image: { type: 'string' }, job: { type: 'string' } } },
});

class Page extends Construct {
  constructor(scope, id, { metadata: { name }, spec: { image, job } }) {
    super(scope, id);
    const labels = { ${selected}: name };
    const template = (image, rest) => ({ metadata: { labels }, spec: { containers: [{ name: 'web', image, imagePullPolicy: '${policy}' }], ...rest } });
    new ApiObject(this, 'Deployment', {
      apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name },
      spec: { selector: { matchLabels: labels }, template: template(image) },
    });
    if (job) new ApiObject(this, 'Job', {
      apiVersion: 'batch/v1', kind: 'Job', metadata: { name },
      spec: { template: template(job, { restartPolicy: 'Never' }) },
    });
  }
}

export default {
  builtIn: false,
  kinds: [defineKind({
    crd, construct: Page,
    children: [{ apiVersion: 'apps/v1', kind: 'Deployment' }, { apiVersion: 'batch/v1', kind: 'Job', recreate: true }],
  })],
};
`;

const root = realpathSync(mkdtempSync(join(tmpdir(), 'since-')));
const project = join(root, 'repository/project');
const temporary = join(root, 'tmp');
const env = { ...process.env, TMPDIR: temporary, PATH: commandPath(), KUBECONFIG: '', NO_COLOR: '1' };

function put(files: Readonly<Record<string, string>>, folder = project): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
}

const git = (...args: string[]) =>
  done('git', ['-c', 'user.name=a', '-c', 'user.email=a@b.c', ...args], { cwd: project, env });

/** Makes a commit of what is there. @returns its name */
async function commit(): Promise<string> {
  await git('add', '--all');
  await git('commit', '--quiet', '--allow-empty', '-m', 'change');
  return (await git('rev-parse', 'HEAD')).trim();
}

function diff(...args: readonly string[]): Promise<Ran> {
  return run(process.execPath, [bundle, 'diff', ...args], { cwd: project, env });
}

/** Has a folder use packages: the command as it is shipped, and what kinds import. */
function install(folder: string): void {
  mkdirSync(join(folder, 'node_modules'), { recursive: true });
  symlinkSync(packed, join(folder, 'node_modules/cdk8s-reconstruct'));
  for (const name of ['cdk8s', 'constructs'])
    symlinkSync(join(repoFolder(), 'node_modules', name), join(folder, 'node_modules', name));
}

let first: string;

beforeAll(async () => {
  mkdirSync(temporary);
  put({
    'reconstruct.config.mjs': kindFile('Always'),
    ...{ 'apps/web.yaml': sample('web', ', job: "job:1"'), 'apps/old.yaml': sample('old') },
    ...{ 'services/all.yaml': services, 'services.config.mjs': 'export default {};\n' },
    ...{ 'package-lock.json': '{}', '.gitignore': 'node_modules\n' },
  });
  install(project);
  await git('init', '--quiet', '..');
  first = await commit();
});
afterAll(() => {
  rmSync(root, { recursive: true });
});

/** Replaces files for as long as it runs. */
async function having<T>(files: Readonly<Record<string, string>>, use: () => Promise<T>): Promise<T> {
  put(files);
  try {
    return await use();
  } finally {
    await git('checkout', '--quiet', 'HEAD', '--', '.');
    await git('clean', '--quiet', '--force', '-d');
  }
}

test('of a change in Git: what is rendered, which pods are rolled, and nothing is left behind', async () => {
  const files = { 'reconstruct.config.mjs': kindFile('IfNotPresent'), 'apps/new.yaml': sample('new') };
  await having(files, async () => {
    rmSync(join(project, 'apps/old.yaml'));
    const status = await git('status', '--porcelain');
    const { code, stdout, stderr } = await diff('--since', first, 'apps', '-o', 'json');
    expect([code, stderr]).toEqual([1, '']);
    const found = JSON.parse(stdout) as { readonly changes: readonly object[] };
    expect(found).toMatchObject({
      ...{ differs: true, compared: { Page: 2 }, rollouts: { Deployment: 2 } },
      counts: { created: 1, changed: 1, recreated: 1, deleted: 1 },
    });
    const path = '.spec.template.spec.containers[].imagePullPolicy';
    expect(found.changes).toContainEqual({
      ...{
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        action: 'changed',
        path,
        field: 'changed',
        rollout: true,
      },
      ...{ before: 'Always', after: 'IfNotPresent', count: 1, of: 3, examples: ['shop/web'] },
    });
    expect(found.changes).toContainEqual({
      ...{
        apiVersion: 'batch/v1',
        kind: 'Job',
        action: 'recreated',
        count: 1,
        of: 1,
        examples: ['shop/web'],
      },
    });
    expect((await diff('--since', 'HEAD', 'apps')).stdout).toContain(
      '1 Deployment would roll its pods; 1 Deployment would be deleted, with its pods\n',
    );
    expect(await git('status', '--porcelain')).toBe(status);
    expect(await git('worktree', 'list')).toMatch(/^.*\n$/);
    expect(readdirSync(temporary)).toEqual([]);
  });
});

test('of 200 AppServices, the comment of the pull request says that they would roll', async () => {
  const next = join(repoFolder(), 'test/support/kinds/next-version.config.mjs');
  const config = 'services.config.mjs';
  await having({ [config]: `export { default } from ${JSON.stringify(next)};\n` }, async () => {
    const args = ['--since', first, '--config', config, 'services', '-o', 'markdown'];
    const { code, stdout, stderr } = await diff(...args);
    expect([code, stderr]).toEqual([1, '']);
    expect(stdout).toContain('200 Deployments would roll their pods');
  });
});

test('without a change nothing differs', async () => {
  expect(await diff('--since', first, 'apps')).toEqual({
    ...{ code: 0, stderr: '' },
    stdout: '2 Page compared, with 3 objects: no changes\n',
  });
});

test('what Kubernetes refuses to change in place is said', async () => {
  await having({ 'reconstruct.config.mjs': kindFile('Always', 'page') }, async () => {
    const { code, stdout } = await diff('--since', first, 'apps');
    expect(code).toBe(1);
    expect(stdout).toContain("Deployment: can't be applied: ImmutableField in 2 of 2\n");
    expect(stdout).toContain(
      ".spec.selector.matchLabels.page, .spec.selector.matchLabels.app can't be changed in place",
    );
  });
});

describe('a folder', () => {
  test('is compared by its own kinds and packages', async () => {
    const folder = join(root, 'folder');
    put({ 'reconstruct.config.mjs': kindFile('Never'), 'apps/web.yaml': sample('web') }, folder);
    install(folder);
    const { stdout } = await diff('--since', '../../folder', 'apps/web.yaml');
    expect(stdout).toContain('- Never\n+ Always\n');
  });

  test('that is a package has kinds, which render the present custom resources', async () => {
    const folder = join(root, 'other/node_modules/pages');
    put({ 'reconstruct.config.mjs': kindFile('Never') }, folder);
    install(join(root, 'other'));
    const { stdout } = await diff('--since', '../../other/node_modules/pages', 'apps');
    expect(stdout).toContain(
      'Deployment: .spec.template.spec.containers[].imagePullPolicy changed in 2 of 2\n',
    );
    rmSync(join(folder, 'reconstruct.config.mjs'));
    const { code, stderr } = await diff('--since', '../../other/node_modules/pages', 'apps');
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining('reconstruct.config.mjs: there is no such file'),
    ]);
  });
});

describe('where it was not there', () => {
  test('a file, or the configuration, all is new', async () => {
    const files = { 'own.mjs': kindFile('Always'), 'more/new.yaml': sample('new') };
    await having(files, async () => {
      const one = await diff('--since', first, 'more', '-o', 'json');
      expect(JSON.parse(one.stdout)).toMatchObject({ counts: { created: 1 } });
      rmSync(join(project, 'reconstruct.config.mjs'));
    });
    await git('rm', '--quiet', 'reconstruct.config.mjs');
    const without = await commit();
    put({ 'reconstruct.config.mjs': kindFile('Always') });
    await commit();
    const { code, stdout, stderr } = await diff('--since', without, 'apps', '-o', 'json');
    expect([code, stderr]).toEqual([
      1,
      `--since ${without}: there is no reconstruct.config.mjs, so that all is new\n`,
    ]);
    expect(JSON.parse(stdout)).toMatchObject({ counts: { created: 3 } });
  });
});

test('a configuration of another name is an error, which says how to name it', async () => {
  await git('mv', 'reconstruct.config.mjs', 'old.mjs');
  const old = await commit();
  await git('mv', 'old.mjs', 'reconstruct.config.mjs');
  await commit();
  const reexport = `export { default } from './reconstruct.config.mjs';`;
  const why = 'there is no reconstruct.config.mjs, but old.mjs, which seems to be the configuration';
  expect(await diff('--since', old, 'apps')).toEqual({
    ...{ code: 2, stdout: '' },
    stderr: `--since ${old}: ${why}: have old.mjs here, too, such as \`${reexport}\`, and give --config old.mjs\n`,
  });
  await having({ 'old.mjs': reexport }, async () => {
    expect(await diff('--since', old, '--config', 'old.mjs', 'apps')).toMatchObject({ code: 0, stderr: '' });
  });
});

describe('what is refused', () => {
  test.for([
    [
      'no revision',
      ['--since', 'nowhere', 'apps'],
      /^--since nowhere: there is no such folder, and Git knows no such revision/,
    ],
    ['standard input', ['--since', 'HEAD', '-'], /^--since compares files with what they were/],
    ['no file', ['--since', 'HEAD'], /^--since compares files with what they were/],
    [
      'a file that never was',
      ['--since', 'HEAD', 'none.yaml'],
      /^none\.yaml: can't be read: there is no such file/,
    ],
    ['beside --all', ['--since', 'HEAD', '--all'], /'--since <revision>' cannot be used with option '--all'/],
    ['a comment on one cluster object', ['apps', '-o', 'markdown'], /^-o markdown is for what is counted/],
  ] as const)('%s', async ([, args, message]) => {
    const { code, stdout, stderr } = await diff(...args);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(message);
  });

  test('kinds that could not be loaded, with the side that it is of', async () => {
    put({ 'reconstruct.config.mjs': 'export default 1;' });
    const broken = await commit();
    put({ 'reconstruct.config.mjs': kindFile('Always') });
    await commit();
    const { code, stderr } = await diff('--since', broken, 'apps');
    expect([code, stderr]).toEqual([
      2,
      `--since ${broken}: can't be rendered as it was there:\nreconstruct.config.mjs: its default export is 1; write \`export default { kinds: [defineKind({ ... })] }\`\n`,
    ]);
    expect(readdirSync(temporary)).toEqual([]);
  });

  test('other packages than those that are installed', async () => {
    await having({ 'package-lock.json': '{ "lockfileVersion": 3 }' }, async () => {
      const { code, stderr } = await diff('--since', 'HEAD', 'apps');
      expect(code).toBe(2);
      expect(stderr).toContain('run "git worktree add ../since HEAD"');
      expect(stderr).toContain('and give --since ../since/project/');
    });
  });
});

test('an interrupt ends it, and leaves nothing behind', async () => {
  put({
    'reconstruct.config.mjs': `import { writeFileSync } from 'node:fs';\nwriteFileSync('${root}/began', '');\nawait new Promise((done) => setTimeout(done, 60_000));`,
  });
  const slow = await commit();
  put({ 'reconstruct.config.mjs': kindFile('Always') });
  await commit();
  const child = spawn(process.execPath, [bundle, 'diff', '--since', slow, 'apps'], {
    cwd: project,
    env,
    stdio: 'ignore',
  });
  await eventually(() => {
    expect(existsSync(join(root, 'began'))).toBe(true);
  });
  child.kill('SIGINT');
  expect(await once(child, 'exit')).toEqual([130, null]);
  expect(readdirSync(temporary)).toEqual([]);
});

describe('the action', () => {
  const { inputs, runs } = parse(
    readFileSync(join(repoFolder(), '.github/actions/diff/action.yml'), 'utf8'),
  ) as {
    readonly inputs: Readonly<Record<string, { readonly default?: string }>>;
    readonly runs: { readonly steps: readonly { readonly run: string; readonly env: object }[] };
  };
  const bin = join(root, 'bin');
  const runner = join(root, 'runner');
  const files = { GITHUB_STEP_SUMMARY: join(runner, 'summary'), GITHUB_OUTPUT: join(runner, 'output') };
  const [diffStep, commentStep] = runs.steps as [(typeof runs.steps)[0], (typeof runs.steps)[0]];

  /** Runs a step as GitHub does, with programs that stand for `npx` and `gh`. */
  const step = ({ run: script, env: declared }: typeof diffStep, given: NodeJS.ProcessEnv): Promise<Ran> => {
    expect(Object.keys(declared).filter((name) => !(name in given))).toEqual([]);
    const path = [bin, env.PATH].join(delimiter);
    const all = { ...env, PATH: path, RUNNER_TEMP: runner, ...files, ...given };
    return run('bash', ['--noprofile', '--norc', '-eo', 'pipefail', '-c', script], {
      cwd: project,
      env: all,
    });
  };
  const program = (name: string, script: string): void => {
    writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`);
    chmodSync(join(bin, name), 0o755);
  };
  const compared = (since: string): Promise<Ran> => {
    for (const file of Object.values(files)) writeFileSync(file, '');
    const prepare = `ln -s ${project}/node_modules node_modules`;
    return step(diffStep, { FILES: 'apps --details 1', SINCE: since, PREPARE: prepare });
  };
  let marker: string | undefined;
  /** Comments, where one with an id may be there already. @returns the calls of `gh` */
  const commented = async (id: string, differs: string, folder = '.'): Promise<string> => {
    program('gh', `echo "$@" >> ${runner}/calls; case "$*" in *--paginate*) echo "${id}";; esac`);
    writeFileSync(join(runner, 'reconstruct-diff.md'), '**meaning**\n<!-- reconstruct diff -->\n');
    writeFileSync(join(runner, 'calls'), '');
    const given = {
      GH_TOKEN: 'x',
      REPOSITORY: 'shop/web',
      NUMBER: '7',
      DIFFERS: differs,
      FILES: 'a "b" -->',
      FOLDER: folder,
    };
    expect(await step(commentStep, given)).toMatchObject({ code: 0, stderr: '' });
    const [list, ...calls] = readFileSync(join(runner, 'calls'), 'utf8').split('\n');
    marker = /^\*\*meaning\*\*\n(<!-- reconstruct diff \w+ -->)\n$/.exec(
      readFileSync(join(runner, 'reconstruct-comment.md'), 'utf8'),
    )?.[1];
    expect(list).toContain(`select(.user.type == "Bot" and (.body | contains("${marker}")))`);
    return calls.join('\n');
  };

  beforeAll(() => {
    for (const folder of [bin, runner]) mkdirSync(folder);
    program('npx', `shift 2; exec "${process.execPath}" "${bundle}" "$@"`);
    put({ 'package.json': '{}' });
  });

  test('compares with what it was, in the packages that it had, and says whether anything differs', async () => {
    const unchanged = await commit();
    put({ 'reconstruct.config.mjs': kindFile('IfNotPresent') });
    expect(await compared(unchanged)).toMatchObject({ code: 0 });
    expect(readFileSync(files.GITHUB_OUTPUT, 'utf8')).toBe('differs=true\n');
    const text = readFileSync(files.GITHUB_STEP_SUMMARY, 'utf8');
    expect(text).toMatch(/^\*\*2 Deployments would roll their pods\*\* .*\n<!-- reconstruct diff -->\n/);
    expect(readFileSync(join(runner, 'reconstruct-diff.md'), 'utf8')).toBe(text);
    expect(await git('worktree', 'list')).toMatch(/^.*\n$/);
    expect((await compared(await commit())).code).toBe(0);
    expect(readFileSync(files.GITHUB_OUTPUT, 'utf8')).toBe('differs=false\n');
  });

  test('fails where nothing can be compared', async () => {
    put({ 'reconstruct.config.mjs': 'export default 1;' });
    const broken = await commit();
    put({ 'reconstruct.config.mjs': kindFile('Always') });
    expect(await compared(broken)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("can't be rendered") as string,
    });
  });

  test('makes one comment, and brings it up to date', async () => {
    const body = `--field body=@${runner}/reconstruct-comment.md\n`;
    expect(await commented('', 'true')).toBe(`api --silent repos/shop/web/issues/7/comments ${body}`);
    expect(await commented('12', 'true')).toBe(
      `api --silent --method PATCH repos/shop/web/issues/comments/12 ${body}`,
    );
    expect(await commented('12', 'false')).toContain('--method PATCH');
    expect(await commented('', 'false')).toBe('');
  });

  test('brings up to date what a bot wrote of the same project alone', async () => {
    const markers: unknown[] = [];
    for (const folder of ['.', 'one', 'other', '.']) {
      await commented('', 'true', folder);
      markers.push(marker);
    }
    expect(new Set(markers).size).toBe(3);
    expect(markers[3]).toBe(markers[0]);
  });

  test('has for the revision that of the pull request, and moves no action of others', () => {
    expect(inputs.since?.default).toBe('${{ github.event.pull_request.base.sha }}');
    expect(runs.steps.every(({ run: script }) => !script.includes('${{'))).toBe(true);
  });
});
