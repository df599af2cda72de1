import { globSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { repoFolder } from '../../sandbox/paths.js';
import type { AnyObject } from '../../src/contract/object.js';
import { CUSTOMIZATIONS, healthOf } from '../support/health.js';
import type { Verdict } from '../support/health.js';

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
