import { globSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { repoFolder } from '../../sandbox/paths.js';
import type { AnyObject } from '../../src/contract/object.js';
import { CUSTOMIZATIONS, healthOf } from './support/health.js';
import type { Verdict } from './support/health.js';

/** What kstatus makes of that of which Argo CD makes this. */
const KSTATUS: Readonly<Record<string, string>> = {
  Progressing: 'InProgress',
  Healthy: 'Current',
  Degraded: 'Failed',
};

interface HealthTests {
  readonly tests: readonly { readonly healthStatus: Verdict; readonly inputPath: string }[];
}

const kinds = globSync('*/*/health.lua', { cwd: CUSTOMIZATIONS }).map(dirname).sort();

beforeAll(async () => {
  await healthOf([]);
});

function textOf(kind: string, file: string): string {
  return readFileSync(join(CUSTOMIZATIONS, kind, file), 'utf8');
}

test('there is a script for each kind, the same for all', () => {
  const definitions = globSync('crds/*.yaml', { cwd: repoFolder() }).map((file) => {
    const { spec } = parse(readFileSync(join(repoFolder(), file), 'utf8')) as {
      readonly spec: { readonly group: string; readonly names: { readonly kind: string } };
    };
    return `${spec.group}/${spec.names.kind}`;
  });

  expect(kinds).toEqual(definitions.sort());
  expect(new Set(kinds.map((kind) => textOf(kind, 'health.lua'))).size).toBe(1);
});

test.each(kinds)(
  '%s: everything recorded has the health, and the kstatus, that its tests say',
  async (kind) => {
    const { tests } = parse(textOf(kind, 'health_test.yaml')) as HealthTests;
    const recorded = globSync('testdata/*.yaml', { cwd: join(CUSTOMIZATIONS, kind) });
    expect(tests.map(({ inputPath }) => inputPath).sort()).toEqual(recorded.sort());

    const found = await healthOf(tests.map(({ inputPath }) => parse(textOf(kind, inputPath)) as AnyObject));

    expect(found.map(({ argo }) => argo)).toEqual(tests.map(({ healthStatus }) => healthStatus));
    expect(found.map(({ kstatus }) => kstatus.status)).toEqual(
      tests.map(({ healthStatus }) => KSTATUS[healthStatus.status]),
    );
    for (const { inputPath, healthStatus } of tests)
      expect(basename(inputPath)).toMatch(new RegExp(`^${healthStatus.status.toLowerCase()}_`));
  },
);

test('the snippet for argocd-cm holds the scripts', () => {
  const { data } = parse(readFileSync(join(repoFolder(), 'gitops/argocd/argocd-cm.yaml'), 'utf8')) as {
    readonly data: Readonly<Record<string, string>>;
  };

  expect(data).toEqual(
    Object.fromEntries(
      kinds.map((kind) => [
        `resource.customizations.health.${kind.replace('/', '_')}`,
        textOf(kind, 'health.lua'),
      ]),
    ),
  );
});

test('what has no status yet, or one without conditions, is under way', async () => {
  const base = { apiVersion: 'kosmos.io/v1', kind: 'AppService', metadata: { name: 'web', generation: 1 } };
  const statuses = [undefined, {}, { observedGeneration: 1 }, { observedGeneration: 1, conditions: [] }];

  const found = await healthOf(statuses.map((status) => ({ ...base, ...(status && { status }) })));

  expect(new Set(found.map(({ argo }) => argo.status))).toEqual(new Set(['Progressing']));
});
