import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { repoFolder } from '../../sandbox/paths.js';
import type { AnyObject } from '../../src/contract/object.js';
import type { Result } from '../../src/synth/resource-list.js';

const command = join(repoFolder(), 'lib/cli/main.js');
const sample = parse(
  readFileSync(join(repoFolder(), 'examples/appservice-sample.yaml'), 'utf8'),
) as AnyObject;

interface Outcome {
  readonly code: number | null;
  readonly stderr: string;
  readonly items: readonly AnyObject[];
  readonly results: readonly Result[];
}

function fn(list: object, ...args: readonly string[]): Outcome {
  const input = stringify({ apiVersion: 'config.kubernetes.io/v1', kind: 'ResourceList', ...list });
  const { status, stdout, stderr } = spawnSync(process.execPath, [command, 'fn', ...args], {
    ...{ input, encoding: 'utf8', cwd: repoFolder() },
  });
  const { items = [], results = [] } = (parse(stdout) ?? {}) as Partial<Outcome>;
  return { code: status, stderr, items, results };
}

const configMap = (data: object): object => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'options' },
  data,
});

test('it renders what synth renders', () => {
  const { code, items, stderr } = fn({ items: [sample] }, '--namespace', 'shop');

  const args = [command, 'synth', 'examples/appservice-sample.yaml', '-n', 'shop'];
  const rendered = execFileSync(process.execPath, args, { encoding: 'utf8', cwd: repoFolder() });
  expect(items).toEqual(
    rendered
      .split('---\n')
      .filter(Boolean)
      .map((text) => parse(text) as unknown),
  );
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
});

test('a ConfigMap as functionConfig gives options and a policy', () => {
  const data = { namespace: 'shop', kinds: 'appservice', policy: 'appservice: { maxSize: 1 }' };

  const { code, items, results, stderr } = fn({ items: [sample], functionConfig: configMap(data) });

  const message = "spec.size: 2 is more than the policy's maxSize, 1; give 1 or less";
  expect({ code, stderr }).toEqual({ code: 2, stderr: `AppService appservice-sample: ${message}\n` });
  expect(items).toEqual([sample]);
  expect(results).toEqual([
    {
      ...{ severity: 'error', message, field: { path: 'spec.size' } },
      resourceRef: { apiVersion: 'kosmos.io/v1', kind: 'AppService', name: 'appservice-sample' },
    },
  ]);
});

test('options of the functionConfig count as those of the command line do', () => {
  const given = fn(
    { items: [sample], functionConfig: configMap({ namespace: 'shop' }) },
    '--namespace',
    'other',
  );

  expect(given.items.map(({ metadata }) => metadata.namespace)).toEqual(['shop', 'shop']);
});

test.each([
  [{ namepsace: 'shop' }, 'data.namepsace: there is no such option; did you mean namespace?'],
  [
    { config: '/etc/kinds.mjs' },
    'data.config: there is no such option; the keys are policy, namespace, kinds,',
  ],
  [{ kinds: 'nonsense' }, '--kinds: there is no kind nonsense'],
  [{ namespace: 7 }, 'data.namespace: 7 is not text; put it in quotes'],
  [{ namespace: 'a b' }, '--namespace "a b" is not a DNS label'],
  [{ policy: 'appservice: { maxsize: 1 }' }, 'appservice.maxsize: unknown field; did you mean maxSize?'],
  [{ 'jobwatcher-deletes-per-second': 'many' }, 'jobwatcher-deletes-per-second'],
])('%j is refused, as a result too', (data, message) => {
  const { code, stderr, items, results } = fn({ items: [sample], functionConfig: configMap(data) });

  expect(stderr).toContain(message);
  expect(code).toBe(2);
  expect(items).toEqual([sample]);
  expect(results).toEqual([{ severity: 'error', message: expect.stringContaining(message) as string }]);
});

test('a policy of the command line is not loosened by a list', () => {
  const policy = join(repoFolder(), 'examples/policy/policy.yaml');
  const functionConfig = configMap({ policy: '{}' });

  const { code, stderr } = fn({ items: [sample], functionConfig }, '--policy', policy);

  expect({ code, stderr }).toEqual({
    code: 2,
    stderr: 'functionConfig: data.policy: --policy gives one already; remove it\n',
  });
});

test('a functionConfig that is nothing known is refused', () => {
  const functionConfig = { apiVersion: 'example.com/v1', kind: 'Settings', metadata: { name: 'x' } };

  expect(fn({ items: [sample], functionConfig }).stderr).toContain(
    'functionConfig: Settings of example.com/v1 is nothing that is known here',
  );
});

test('what is no ResourceList is bad input, and nothing is written', () => {
  const { code, stderr, items } = fn({ kind: 'List' });

  expect({ code, items }).toEqual({ code: 2, items: [] });
  expect(stderr).toContain('<stdin>: holds "List"');
});
