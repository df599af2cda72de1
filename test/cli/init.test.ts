import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { repoFolder } from '../../sandbox/paths.js';
import { CliError } from '../../src/cli/output.js';
import { withKind } from '../../src/cli/init/project.js';
import { ownDependency, readChildren, readNames } from '../../src/cli/init/options.js';
import { folderWith } from '../synth/fixtures.js';

const SOURCE = 'https://example.com/cdk8s-reconstruct-0.1.0.tgz';

describe('--children', () => {
  test.each([
    ['Deploymnet', 'there is no Deploymnet in the template; did you mean Deployment?'],
    ['Services', 'did you mean Service?'],
    ['ClusterRole', 'are better created by an admin'],
    ['Deployment,StatefulSet', 'give one'],
    ['Service,CronJob', 'add Deployment or StatefulSet or DaemonSet'],
    ['Deployment,Ingress', 'add Service'],
    ['DaemonSet,HorizontalPodAutoscaler', 'add Deployment or StatefulSet'],
    ['ConfigMap,NetworkPolicy', 'add Deployment'],
    ['StatefulSet,PersistentVolumeClaim', 'leave it out, or StatefulSet'],
    ['Deployment,PersistentVolumeClaim,PodDisruptionBudget', 'leave it out, or PodDisruptionBudget'],
    ['Deployment,CronJob,PersistentVolumeClaim', 'leave it out, or CronJob'],
  ])('%s is refused, with the remedy', (kinds, message) => {
    expect(() => readChildren(kinds.split(','))).toThrow(CliError);
    expect(() => readChildren(kinds.split(','))).toThrow(message);
  });
});

describe('names', () => {
  test('of the kind and the files follow from that of the project', () => {
    expect(readNames('guest-book')).toEqual({
      ...{ project: 'guest-book', group: 'example.com', kind: 'GuestBook', file: 'guest-book' },
    });
    expect(readNames('ops', 'net.example.org', 'TCPRoute')).toMatchObject({
      kind: 'TCPRoute',
      file: 'tcp-route',
    });
  });

  test.each<[project: string, group: string | undefined, kind: string | undefined, message: string]>([
    ['Guest_Book', undefined, undefined, 'as in guest-book'],
    ['a'.repeat(64), undefined, undefined, 'at most 63'],
    ['../shop', undefined, undefined, 'write at most 63 lower-case letters'],
    ['shop', 'example', undefined, '--group: "example" can\'t be used: a group is a domain in lower case'],
    ['shop', 'web.k8s.io', undefined, 'it is reserved for Kubernetes'],
    ['shop', undefined, 'Guest-Book', 'as in GuestBook'],
    ['no', undefined, undefined, '--kind: "No" can\'t be used: YAML reads it'],
  ])('%j, %j, %j are refused', (project, group, kind, message) => {
    expect(() => readNames(project, group, kind)).toThrow(message);
  });

  test('that the modules with the class use for something else are refused', () => {
    const identifiers = ['src/gizmo/construct.ts', 'src/gizmo/kind.ts'].flatMap((file) =>
      readFileSync(join(repoFolder(), 'templates/init', file), 'utf8')
        .replaceAll(/\/\*[^]*?\*\/|\/\/.*|'[^'\n]*'/g, '')
        .match(/\b[A-Z]\w*\b/g),
    );
    const taken = new Set(
      [...identifiers, 'Crd', 'Kind'].filter((name) => name !== null && name !== 'Gizmo'),
    );
    expect([...taken]).toEqual(expect.arrayContaining(['ApiObject', 'Construct']));
    for (const name of taken) expect(() => readNames('shop', undefined, name!)).toThrow('choose another');
  });
});

describe('a kind that is added to a configuration', () => {
  const names = readNames('shop');
  const line = "import { kind as shopKind } from './src/shop/kind.ts';\n";

  test('comes behind the imports and in the list, not in a comment, and a leading #! stays first', () => {
    const before = '// As in kinds: [a]\n/**\n * kinds: [],\n */\n';
    const list = (kinds: string): string => `${before}export default {\n  kinds: [${kinds}],\n};\n`;
    expect(withKind(`#!/usr/bin/env node\n${list('a')}`, names).text).toBe(
      `#!/usr/bin/env node\n${line}${list('a, shopKind')}`,
    );
    expect(withKind(`import { a } from './a.ts';\n${list('\n    a,\n  ')}`, names).text).toBe(
      `import { a } from './a.ts';\n${line}${list('a, shopKind')}`,
    );
  });

  test.each([
    'export default { kinds: all };\n',
    '// kinds: [a]\nexport default { kinds: all };\n',
    'export default { kinds: all }; // not kinds: [a]\n',
    'const others = { kinds: [a] };\nexport default { kinds: [b] };\n',
  ])('is left to the author in %j', (config) => {
    expect(withKind(config, names)).toEqual({ line: line.trimEnd() });
  });
});

describe('the dependency', () => {
  const CONTENT = 'packed';
  const tarball = { path: 'vendor/cdk8s-reconstruct-0.1.0.tgz', content: Buffer.from(CONTENT) };

  /** A package below `project/node_modules`, with what npm has recorded of it. */
  function installed(record: object | undefined, name = 'cdk8s-reconstruct'): string {
    const top = folderWith({ 'cdk8s-reconstruct-0.1.0.tgz': CONTENT });
    const modules = join(top, 'project/node_modules');
    mkdirSync(join(modules, name), { recursive: true });
    writeFileSync(join(modules, name, 'package.json'), JSON.stringify({ name }));
    const packages = { [`node_modules/${name}`]: record };
    if (record) writeFileSync(join(modules, '.package-lock.json'), JSON.stringify({ packages }));
    return join(modules, name);
  }
  const resolved = 'https://registry.example.com/cdk8s-reconstruct/-/cdk8s-reconstruct-0.1.0.tgz';
  const file = 'file:../cdk8s-reconstruct-0.1.0.tgz';
  const scoped = '@example/reconstruct';

  test('is the packed file that it was installed from, or that is given', () => {
    const expected = { name: 'cdk8s-reconstruct', spec: 'file:vendor/cdk8s-reconstruct-0.1.0.tgz', tarball };
    const folder = installed({ version: '0.1.0', resolved: file });
    expect(ownDependency(undefined, folder)).toEqual(expected);
    const given = join(folder, '../../../cdk8s-reconstruct-0.1.0.tgz');
    for (const path of [given, `file:${given}`])
      expect(ownDependency(path, installed(undefined))).toEqual(expected);
  });

  test('is the exact version from a registry', () => {
    const record = { version: '0.1.0', resolved };
    expect(ownDependency(undefined, installed(record, scoped))).toEqual({ name: scoped, spec: '0.1.0' });
  });

  test.each([
    ['0.3.0', scoped, '0.3.0'],
    ['next', scoped, 'next'],
    ['npm:@example/reconstruct@1.0.0', 'cdk8s-reconstruct', 'npm:@example/reconstruct@1.0.0'],
    [SOURCE, 'cdk8s-reconstruct', SOURCE],
  ])('is what is given: %s', (given, name, spec) => {
    expect(ownDependency(given, installed(undefined, name))).toEqual({ name, spec });
  });

  test.each<[given: string | undefined, record: object | undefined, message: string]>([
    [undefined, { resolved: 'file:../gone.tgz' }, 'is gone; give it with --package FILE'],
    [undefined, undefined, "npm hasn't recorded where"],
    ['npm:other@1.0.0', undefined, 'npm:other@1.0.0 is no packed file'],
    ['gone.tgz', undefined, 'gone.tgz is no packed file'],
    ['..', undefined, '.. is no packed file'],
  ])('is refused where others could not install it: %s, recorded as %j', (given, record, message) => {
    expect(() => ownDependency(given, installed(record))).toThrow(message);
  });

  test('is no clone, which has to be packed', () => {
    expect(() => ownDependency(undefined, folderWith({ 'package.json': '{}' }))).toThrow(
      'pack it with "npm run package" there',
    );
  });
});
