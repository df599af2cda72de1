import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { CliError } from '../../src/cli/exit.js';
import { loadPolicy } from '../../src/cli/policy.js';
import { synthCommand } from '../../src/cli/synth.js';
import type { Kind } from '../../src/contract/kind.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { folderWith, widgetKind } from '../synth/fixtures.js';

const POLICY = 'appservice:\n  securityProfile: Baseline\n  maxSize: 3\n';
const ALLOWED = { appservice: { securityProfile: 'Baseline', maxSize: 3 } };

function load(text: string, kinds: readonly Kind[] = [appService, widgetKind()]) {
  return loadPolicy(join(folderWith({ 'policy.yaml': text }), 'policy.yaml'), kinds);
}

function configMap(data: string): string {
  return `apiVersion: v1\nkind: ConfigMap\nmetadata: { name: policy }\ndata:\n${data}`;
}

const indented = POLICY.replaceAll(/^/gm, '    ').trimEnd();

test('a policy is a mapping, as YAML or JSON', async () => {
  expect(await load(POLICY)).toEqual(ALLOWED);
  expect(await load(JSON.stringify(ALLOWED))).toEqual(ALLOWED);
  expect(await load('{}')).toEqual({});
});

test('or a ConfigMap with one key, whatever it is called', async () => {
  expect(await load(configMap(`  policy.yaml: |\n${indented}\n`))).toEqual(ALLOWED);
});

test.each([
  ['', ['FILE: holds nothing; write e.g. "appservice: { maxSize: 10 }", or {} for no rules']],
  [
    '- appservice',
    [
      'FILE: line 1: ["appservice"] is not a mapping from kinds to what is allowed of them; write e.g. "appservice: { maxSize: 10 }"',
    ],
  ],
  [`${POLICY}---\n${POLICY}`, ['FILE: line 5: a second document begins; put all kinds into one']],
  ['appservise: {}', ['FILE: line 1: appservise: unknown field; did you mean appservice?']],
  ['metadata: {}', ['FILE: line 1: metadata: unknown field; remove it; the fields here are appservice']],
  ['widget: {}', ['FILE: line 1: widget: this kind knows no policy; remove it']],
  [
    'appservice:\n  maxSize: -1\n  maxsize: 3\n  securityProfile: Privileged',
    [
      'FILE: line 2: appservice.maxSize: -1 is less than 0; give 0 or more',
      'FILE: line 3: appservice.maxsize: unknown field; did you mean maxSize?',
      'FILE: line 4: appservice.securityProfile: "Privileged" is not one of Baseline, Restricted; give one of them',
    ],
  ],
  ['appservice: [', [expect.stringMatching(/^FILE: document 1, line 1: this is not YAML: /)]],
  ['apiVersion: v1\nkind: Secret', ['FILE: holds "Secret" of "v1"; give a policy, or a ConfigMap with one']],
  [configMap('  {}'), ['FILE: data has no key; give it one key, with the policy as text']],
  [configMap('  a: x\n  b: x'), ['FILE: data has a, b; give it one key, with the policy as text']],
  [
    configMap('  policy.yaml: |\n    appservice:\n      maxSize: many\n'),
    [
      'FILE: data["policy.yaml"]: line 2: appservice.maxSize: "many" is a string, not an integer; give an integer',
    ],
  ],
])('refuses %j', async (text, lines) => {
  const folder = folderWith({ 'policy.yaml': text });
  const file = join(folder, 'policy.yaml');

  const error = await refusalOf(loadPolicy(file, [appService, widgetKind()]));

  expect(error).toMatchObject({ exitCode: 2 });
  const shown = error.lines.map((line) => line.replace(file, 'FILE'));
  expect(shown).toEqual(lines);
});

test('a file that is not there', async () => {
  expect((await refusalOf(loadPolicy('nowhere.yaml', [appService]))).lines).toEqual([
    'nowhere.yaml: there is no such file; check the path given to --policy',
  ]);
});

test.each(['docker.io', 'localhost', 'registry.example.com:5000/shop/web', 'ghcr.io/shop/', '10.0.0.1/x'])(
  '%s is a registry',
  async (registry) => {
    expect(await load(`appservice: { imageRegistries: ['${registry}'] }`)).toBeDefined();
  },
);

test.each(['nginx', 'library/nginx', 'https://ghcr.io', 'ghcr.io//shop', '/shop', ''])(
  '%j is none',
  async (registry) => {
    await expect(load(`appservice: { imageRegistries: ['${registry}'] }`)).rejects.toThrow(CliError);
  },
);

test('synth refuses what the policy forbids, with its place, and renders what it allows', async () => {
  const web = (size: number): string =>
    `apiVersion: kosmos.io/v1\nkind: AppService\nmetadata: { name: web }\nspec:\n  size: ${size}\n  image: nginx\n`;
  const folder = folderWith({
    'big.yaml': web(4),
    'small.yaml': web(3),
    'policy.yml': 'appservice: { maxSize: 3 }',
  });
  const synth = (file: string, output: string) =>
    synthCommand().parseAsync([join(folder, file), '-o', output, '--policy', join(folder, 'policy.yml')], {
      from: 'user',
    });
  vi.stubEnv('CDK8S_OUTDIR', undefined);
  const output = join(folder, 'out');

  await expect(synth('big.yaml', output)).rejects.toMatchObject({
    exitCode: 2,
    lines: [
      `${join(folder, 'big.yaml')}: document 1, line 5: spec.size: 4 is more than the policy's maxSize, 3; give 3 or less`,
    ],
  });
  await synth('small.yaml', output);

  expect(readFileSync(join(output, 'default.appservice.kosmos.io.web.yaml'), 'utf8')).toContain(
    'replicas: 3',
  );
  vi.unstubAllEnvs();
});

async function refusalOf(loaded: Promise<unknown>): Promise<CliError> {
  const error = await loaded.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(CliError);
  return error as CliError;
}
