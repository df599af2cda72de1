import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { parse, stringify } from 'yaml';
import { repoFolder } from '../../sandbox/paths.js';
import { program } from '../../src/cli/commands.js';
import { CliError } from '../../src/cli/output.js';
import { OperatorError } from '../../src/contract/error.js';
import type { AnyObject } from '../../src/contract/object.js';
import type { Result } from '../../src/cli/synth/resource-list.js';

const { input, output } = vi.hoisted(() => ({ input: { text: '' }, output: { text: '' } }));

vi.mock(import('../../src/validate/document.js'), async (original) => ({
  ...(await original()),
  readStdin: () => Promise.resolve(Buffer.from(input.text)),
}));

vi.mock(import('../../src/cli/output.js'), async (original) => ({
  ...(await original()),
  print: (text: string) => {
    output.text += text;
    return Promise.resolve();
  },
}));

const file = join(repoFolder(), 'examples/appservice-sample.yaml');
const sample = parse(readFileSync(file, 'utf8')) as AnyObject;

beforeEach(() => {
  output.text = '';
  vi.stubEnv('CDK8S_OUTDIR', undefined);
});

afterEach(() => {
  vi.unstubAllEnvs();
});

interface Outcome {
  readonly code: number;
  readonly stderr: string;
  readonly items: readonly AnyObject[];
  readonly results: readonly Result[];
}

async function fn(list: object, ...args: readonly string[]): Promise<Outcome> {
  input.text = stringify({ apiVersion: 'config.kubernetes.io/v1', kind: 'ResourceList', ...list });
  let [code, stderr] = [0, ''];
  try {
    await program().parseAsync(['fn', ...args], { from: 'user' });
  } catch (error) {
    if (!(error instanceof OperatorError || error instanceof CliError)) throw error;
    [code, stderr] = [error instanceof CliError ? error.exitCode : 2, `${error.message}\n`];
  }
  const { items = [], results = [] } = (parse(output.text) ?? {}) as Partial<Outcome>;
  return { code, stderr, items, results };
}

const configMap = (data: object): object => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'options' },
  data,
});

test('it renders what synth renders', async () => {
  const { code, items } = await fn({ items: [sample] }, '--namespace', 'shop');

  output.text = '';
  await program().parseAsync(['synth', file, '-n', 'shop'], { from: 'user' });
  const rendered = output.text.split('---\n').filter((text) => text !== '');
  expect(items).toEqual(rendered.map((text) => parse(text) as unknown));
  expect(code).toBe(0);
});

test('a ConfigMap as functionConfig gives options and a policy', async () => {
  const data = { namespace: 'shop', kinds: 'appservice', policy: 'appservice: { maxSize: 1 }' };

  const { code, items, results, stderr } = await fn({ items: [sample], functionConfig: configMap(data) });

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

test.each([
  ['namespace', 'shop', 'other'],
  ['kinds', 'appservice,jobwatcher', 'appservice'],
  ['jobwatcher-deletes-per-second', '100', '1'],
])('%s of the command line is not overridden by a list', async (key, inList, ofCaller) => {
  const functionConfig = configMap({ [key]: inList });
  const { code, stderr, items } = await fn({ items: [sample], functionConfig }, `--${key}`, ofCaller);

  expect({ code, stderr }).toEqual({
    code: 2,
    stderr: `functionConfig: data.${key}: --${key} gives another one already; remove it\n`,
  });
  expect(items).toEqual([sample]);
});

test.each([
  [{ namepsace: 'shop' }, 'data.namepsace: there is no such option; did you mean namespace?'],
  [
    { config: '/etc/kinds.mjs' },
    'data.config: there is no such option; the keys are policy, settings, namespace, kinds,',
  ],
  [{ kinds: 'nonsense' }, '--kinds: there is no kind nonsense'],
  [{ namespace: 7 }, 'data.namespace: 7 is not text; put it in quotes'],
  [{ namespace: 'a b' }, "a b can't name a namespace"],
  [{ policy: 'appservice: { maxsize: 1 }' }, 'appservice.maxsize: unknown field; did you mean maxSize?'],
  [{ settings: 'appservice: {}' }, 'data.settings: line 1: appservice: this kind knows no settings'],
  [{ 'jobwatcher-deletes-per-second': 'many' }, 'jobwatcher-deletes-per-second'],
])('%j is refused, as a result too', async (data, message) => {
  const { code, stderr, items, results } = await fn({ items: [sample], functionConfig: configMap(data) });

  expect(stderr).toContain(message);
  expect(code).toBe(2);
  expect(items).toEqual([sample]);
  expect(results).toEqual([{ severity: 'error', message: expect.stringContaining(message) as string }]);
});

test('a policy of the command line is not loosened by a list', async () => {
  const policy = join(repoFolder(), 'examples/policy/policy.yaml');
  const functionConfig = configMap({ policy: '{}' });

  const { code, stderr } = await fn({ items: [sample], functionConfig }, '--policy', policy);

  expect({ code, stderr }).toEqual({
    code: 2,
    stderr: 'functionConfig: data.policy: --policy gives another one already; remove it\n',
  });
});

test('what is no ResourceList is bad input, and nothing is written', async () => {
  const { code, stderr, items } = await fn({ kind: 'List' });

  expect({ code, items }).toEqual({ code: 2, items: [] });
  expect(stderr).toContain('<stdin>: holds "List"');
});
