import { expect, test } from 'vitest';
import { readAdminFile } from '../../src/cli/admin-file.js';
import { sectionsIn } from '../../src/cli/sections.js';
import type { CliError } from '../../src/cli/output.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { widgetKind } from '../synth/fixtures.js';

const POLICY = 'appservice:\n  securityProfile: Baseline\n  maxSize: 3\n';
const ALLOWED = { appservice: { securityProfile: 'Baseline', maxSize: 3 } };
const parse = (text: string) => sectionsIn('policy', 'FILE', text, [appService, widgetKind()]);

function configMap(data: string): string {
  return `apiVersion: v1\nkind: ConfigMap\nmetadata: { name: policy }\ndata:\n${data}`;
}

test('a policy is a mapping, as YAML or JSON, or a ConfigMap with one key', () => {
  expect(parse(POLICY)).toEqual(ALLOWED);
  expect(parse(JSON.stringify(ALLOWED))).toEqual(ALLOWED);
  expect(parse('{}')).toEqual({});
  const indented = POLICY.replaceAll(/^/gm, '    ').trimEnd();
  expect(parse(configMap(`  policy.yaml: |\n${indented}\n`))).toEqual(ALLOWED);
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
])('refuses %j', (text, lines) => {
  expect(() => parse(text)).toThrow(expect.objectContaining({ exitCode: 2, lines }) as Error);
});

test('settings are read as a policy is; what has a default may be left out', () => {
  const settingsSchema = {
    type: 'object',
    required: ['domain', 'image'],
    properties: { domain: { type: 'string' }, image: { type: 'string', default: 'nginx:1' } },
  } as const;
  const kinds = [appService, { ...widgetKind(), settingsSchema }];
  const parse = (text: string) => sectionsIn('settings', 'FILE', text, kinds);

  expect(parse('widget: { domain: example.com }')).toEqual({ widget: { domain: 'example.com' } });
  const messages = ['appservice: {}', 'widget: { imag: a }', 'apiVersion: v1\nkind: Secret', ''].map(
    (text) => {
      try {
        return parse(text);
      } catch (error) {
        return (error as CliError).lines;
      }
    },
  );
  expect(messages).toEqual([
    ['FILE: line 1: appservice: this kind knows no settings; remove it'],
    [
      'FILE: line 1: widget.domain: is missing; add it',
      'FILE: line 1: widget.imag: unknown field; did you mean image?',
    ],
    ['FILE: holds "Secret" of "v1"; give settings, or a ConfigMap with them'],
    ['FILE: holds nothing; write e.g. "widget: { domain: example.com }", or {} for the defaults'],
  ]);
});

test('a file that is not there', async () => {
  await expect(readAdminFile('policy', 'nowhere.yaml')).rejects.toThrow(
    'nowhere.yaml: there is no such file; check the path given to --policy',
  );
});

test('registries are hosts, with or without a path', () => {
  const registry = (name: string) => parse(`appservice: { imageRegistries: ['${name}'] }`);
  const good = [
    'docker.io',
    'localhost',
    'registry.example.com:5000/shop/web',
    'ghcr.io/shop/',
    '10.0.0.1/x',
  ];
  for (const name of good) expect(registry(name)).toBeDefined();
  const bad = ['nginx', 'library/nginx', 'https://ghcr.io', 'ghcr.io//shop', '/shop', ''];
  for (const name of bad) expect(() => registry(name)).toThrow();
});
