import { execFileSync, spawnSync } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { repoFolder } from '../../sandbox/paths.js';

/** What esbuild says of the files that it has made. */
interface Meta {
  readonly outputs: Readonly<
    Record<
      string,
      {
        readonly inputs: object;
        readonly entryPoint?: string;
        readonly imports: readonly { readonly path: string; readonly kind: string }[];
      }
    >
  >;
}

const root = repoFolder();
/** The bundle by itself. */
let folder: string;
/** A project that has kinds of its own, and dependencies of its own. */
let own: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'bundle-'));
  own = mkdtempSync(join(tmpdir(), 'own-'));
  execFileSync(process.execPath, [join(root, 'scripts/bundle.mjs'), '--out', join(folder, 'lib/bundle')]);

  cpSync(join(root, 'examples/scheduled-task'), own, { recursive: true });
  mkdirSync(join(own, 'node_modules'));
  for (const name of readdirSync(join(root, 'node_modules')).filter(
    (entry) => entry !== 'cdk8s-reconstruct',
  )) {
    symlinkSync(join(root, 'node_modules', name), join(own, 'node_modules', name));
  }
  symlinkSync(root, join(own, 'node_modules/cdk8s-reconstruct'));
});

afterAll(() => {
  for (const made of [folder, own]) rmSync(made, { recursive: true });
});

function command(...args: string[]): string {
  const file = join(folder, 'lib/bundle/reconstruct.mjs');
  return execFileSync(process.execPath, [file, ...args], { cwd: folder, encoding: 'utf8' });
}

test.each(['json', 'pretty'])('its controller logs in the format %s', (format) => {
  const none = ['--kubeconfig', join(folder, 'none'), '--log-format', format];
  const { status, stderr } = spawnSync(
    process.execPath,
    [join(folder, 'lib/bundle/reconstruct.mjs'), 'run', ...none],
    { cwd: folder, encoding: 'utf8' },
  );
  expect(stderr).toContain(join(folder, 'none'));
  expect(status).toBe(2);
});

test.each([
  ['syntax of JavaScript', 'const b = = 2;', "SyntaxError: Unexpected token '=' (at kind.mjs:2:11)"],
  ['an await that never ends', '  await new Promise(() => {});', 'never ends (at kind.mjs:2:3)'],
  ['a name that is not exported', "import { b } from './kind.mjs';", "export named 'b' (at kind.mjs:2:10)"],
])('a configuration that can’t be loaded is reported with file, line and column: %s', (_, line, message) => {
  const cwd = mkdtempSync(join(folder, 'broken-'));
  writeFileSync(join(cwd, 'kind.mjs'), `export const a = 1;\n${line}\n`);
  writeFileSync(join(cwd, 'reconstruct.config.mjs'), "import './kind.mjs';\nexport default {};\n");
  const file = join(folder, 'lib/bundle/reconstruct.mjs');
  const { status, stderr } = spawnSync(process.execPath, [file, 'synth', 'any.yaml'], {
    ...{ cwd, encoding: 'utf8' },
  });
  expect(stderr).toMatch(/^reconstruct\.config\.mjs: can't be loaded: .*\n$/);
  expect(stderr).toContain(message);
  expect(status).toBe(2);
});

test('a construct in an endless loop is stopped, and the custom resource is named', () => {
  const kind = `import { Construct } from 'constructs';
    import { defineCrd, defineKind } from 'cdk8s-reconstruct';
    const crd = defineCrd({ group: 'loop.example.com', kind: 'Loop', description: 'A loop.', spec: { type: 'object' } });
    class Endless extends Construct {
      constructor(scope, id) {
        super(scope, id);
        for (;;);
      }
    }
    export default { builtIn: false, kinds: [defineKind({ crd, construct: Endless, children: [] })] };`;
  writeFileSync(join(own, 'loop.mjs'), kind);
  writeFileSync(
    join(own, 'loop.yaml'),
    'apiVersion: loop.example.com/v1\nkind: Loop\nmetadata: { name: one }\nspec: {}\n',
  );
  const args = ['synth', '--config', join(own, 'loop.mjs'), join(own, 'loop.yaml')];
  const file = join(folder, 'lib/bundle/reconstruct.mjs');
  const { status, stderr } = spawnSync(process.execPath, [file, ...args], { encoding: 'utf8' });
  expect(stderr).toContain(
    "loop.yaml: document 1, line 1: Loop one can't be rendered: the construct Endless was stopped, since it took longer than 5 s; look for an endless loop",
  );
  expect(status).toBe(2);
});

const sample = join(root, 'examples/appservice-full.yaml');

test('it works with nothing else installed, and renders what the compiled command renders', () => {
  const compiled = join(root, 'lib/cli/main.js');
  expect(command('synth', sample)).toBe(
    execFileSync(process.execPath, [compiled, 'synth', sample], { encoding: 'utf8' }),
  );
});

test('the help, which knows the options of all kinds, loads no kind', () => {
  expect(command('run', '--help')).toContain('--jobwatcher-admin-namespaces');
  const { outputs } = JSON.parse(readFileSync(join(folder, 'lib/bundle/meta.json'), 'utf8')) as Meta;
  const loaded = new Set<string>();
  const load = (output: string): void => {
    if (loaded.has(output)) return;
    loaded.add(output);
    for (const { path, kind } of outputs[output]?.imports ?? []) if (kind === 'import-statement') load(path);
  };
  for (const [output, { entryPoint = '' }] of Object.entries(outputs))
    if (['lib/cli/commands.js', 'lib/cli/exit.js'].includes(entryPoint)) load(output);
  const inputs = [...loaded].flatMap((output) => Object.keys(outputs[output]?.inputs ?? {}));
  expect(inputs).toContain('lib/kinds/flags.js');
  expect(
    inputs.filter((input) => /kinds\/[\w-]+\/kind\.js$|node_modules\/(cdk8s|@bufbuild|yaml)\//.test(input)),
  ).toEqual([]);
});

test('the sandbox, which dev loads from beside it, is not in it', () => {
  const { outputs } = JSON.parse(readFileSync(join(folder, 'lib/bundle/meta.json'), 'utf8')) as Meta;
  const inputs = Object.values(outputs).flatMap((output) => Object.keys(output.inputs));
  expect(inputs).toContain('lib/cli/dev/stand.js');
  expect(inputs.filter((input) => /^lib\/(sandbox|testing)\//.test(input))).toEqual([]);

  const config = join(own, 'reconstruct.config.mjs');
  expect(() => command('dev', '--config', config)).toThrow(
    /The sandbox can't be loaded: .*; it comes with the whole package only, so run this in a project/,
  );
});

test('the classes that it takes of undici have all that they have in the whole library', () => {
  const methods = (library: string): object => {
    const print = `const methods = (one) =>
        one?.prototype ? [...Object.getOwnPropertyNames(one.prototype), ...methods(Object.getPrototypeOf(one))].sort() : [];
      import(${JSON.stringify(library)}).then((all) => console.log(JSON.stringify(
        Object.fromEntries(Object.entries(all).map(([name, one]) => [name, methods(one)])))));`;
    return JSON.parse(
      execFileSync(process.execPath, ['--eval', print], { cwd: root, encoding: 'utf8' }),
    ) as object;
  };
  const parts = methods(join(root, 'scripts/undici-parts.mjs'));
  expect(Object.keys(parts)).toContain('ProxyAgent');
  expect(Object.entries(methods('undici'))).toEqual(expect.arrayContaining(Object.entries(parts)));
});

test('lazy values, patches and errors of another copy of cdk8s and reconstruct work', () => {
  writeFileSync(
    join(own, 'lazy.mjs'),
    `import { ApiObject, JsonPatch, Lazy } from 'cdk8s';
     import { Construct } from 'constructs';
     import { defineKind, OperatorError } from 'cdk8s-reconstruct';
     class Lazily extends Construct {
       constructor(scope, id, { metadata: { name }, spec }) {
         super(scope, id);
         const produce = () => {
           if (spec.schedule === '0 0 * * *') throw new OperatorError({ reason: 'Midnight', message: 'Not at midnight' });
           return spec.schedule;
         };
         const made = new ApiObject(this, 'Job', {
           apiVersion: 'batch/v1', kind: 'CronJob', metadata: { name },
           spec: { schedule: Lazy.any({ produce }) },
         });
         made.addJsonPatch(JsonPatch.add('/spec/suspend', true));
         if (!ApiObject.isApiObject(made)) throw new Error('not an ApiObject');
       }
     }
     export default { kinds: [defineKind({
       crd: new URL('./scheduledtasks.tasks.example.com.yaml', import.meta.url),
       construct: Lazily,
       children: [{ apiVersion: 'batch/v1', kind: 'CronJob' }],
     })] };`,
  );
  const sampleText = readFileSync(join(own, 'sample.yaml'), 'utf8');
  const schedule = /schedule: (.+)/.exec(sampleText)![1]!;
  const render = (text: string): string => {
    writeFileSync(join(own, 'lazy.yaml'), text);
    return command('synth', '--config', join(own, 'lazy.mjs'), join(own, 'lazy.yaml'));
  };
  const rendered = render(sampleText);
  expect(rendered).toContain('suspend: true');
  expect(rendered).toContain(`schedule: ${schedule.replaceAll("'", '')}`);
  expect(() => render(sampleText.replace(schedule, '"0 0 * * *"'))).toThrow('Not at midnight');
});
