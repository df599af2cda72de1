import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CommanderError } from 'commander';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { program } from '../../src/cli/commands.js';
import { execute } from '../../src/cli/exit.js';
import { folderWith, widgetKind } from '../synth/fixtures.js';

vi.mock('../../src/kinds/index.js', () => ({ builtInKinds: [widgetKind()] }));

const FILE = 'shop.widget.demo.example.com.web.yaml';
const WEB = `apiVersion: demo.example.com/v1
kind: Widget
metadata: { name: web, namespace: shop }
spec: { image: nginx }
`;

const { argv } = process;
let printed: string;

beforeEach(() => {
  printed = '';
  vi.stubEnv('CDK8S_OUTDIR', undefined);
  vi.spyOn(process.stdout, 'write').mockImplementation((text, done) => {
    printed += String(text);
    (done as unknown as (() => void) | undefined)?.();
    return true;
  });
});

afterEach(() => {
  Object.assign(process, { argv, exitCode: undefined });
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

async function run(...args: string[]): Promise<void> {
  const all = program();
  for (const command of all.commands) command.exitOverride().configureOutput({ writeErr: () => undefined });
  await all.parseAsync(['synth', ...args], { from: 'user' });
}

test('manifests go to standard output, and nothing else does', async () => {
  await run(folderWith({ 'a.yaml': WEB }));
  expect(printed).toMatch(/^---\napiVersion: v1\nkind: ConfigMap\n/);
});

test('a folder gets the same bytes', async () => {
  const source = folderWith({ 'a.yaml': WEB, 'b.yaml': WEB.replace('name: web', 'name: api') });
  const output = join(folderWith(), 'out');
  await run(source);
  const expected = printed;
  const stderr = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  await run(source, '-o', output);
  expect(printed).toBe(expected);
  expect(stderr.mock.calls.join('')).toBe(`2 files written to ${output}\n`);
  const files = readdirSync(output)
    .filter((name) => name.endsWith('.yaml'))
    .sort();
  expect(files).toEqual(['shop.widget.demo.example.com.api.yaml', FILE]);
  expect(files.map((name) => readFileSync(join(output, name), 'utf8')).join('')).toBe(expected);
});

test('the folder that cdk8s names is the default, --stdout and -o come first', async () => {
  const source = folderWith({ 'a.yaml': WEB });
  const [fromEnv, named] = [folderWith(), folderWith()];
  vi.stubEnv('CDK8S_OUTDIR', fromEnv);
  await run(source, '--stdout');
  expect(readdirSync(fromEnv)).toEqual([]);
  vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  await run(source, '-f', source, '-o', named);
  expect(readdirSync(fromEnv)).toEqual([]);
  expect(readdirSync(named)).toContain(FILE);
  await run(source);
  expect(readdirSync(fromEnv)).toContain(FILE);
});

test('bad input ends with code 2, a line for each problem, and nothing written', async () => {
  const source = folderWith({ 'a.yaml': `${WEB}---\n${WEB.replace('image', 'size: -1, imge')}` });
  const output = folderWith();
  const stderr = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  process.argv = ['node', 'reconstruct', 'synth', source, '-o', output];
  await execute(program());
  expect(process.exitCode).toBe(2);
  expect(stderr.mock.calls.join('').split('\n')).toEqual([
    `${join(source, 'a.yaml')}: document 2, line 9: spec.imge: unknown field; did you mean image?`,
    `${join(source, 'a.yaml')}: document 2, line 9: spec.size: -1 is less than 0; give 0 or more`,
    '',
  ]);
  expect(readdirSync(output)).toEqual([]);
  expect(printed).toBe('');
});

test.each([[['a.yaml', '--stdout', '-o', 'x']], [[]], [['a.yaml', '--nonsense']]])(
  '%j is bad usage',
  async (args) => {
    await expect(run(...args)).rejects.toBeInstanceOf(CommanderError);
  },
);
