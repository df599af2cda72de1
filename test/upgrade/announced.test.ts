import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { repoFolder } from '../../sandbox/paths.js';
import { APPLIED_HASH_ANNOTATION } from '../../src/contract/names.js';
import { packageVersion } from '../../src/cli/version.js';
import { announced, namedIn, newestReleased, observed, unannounced, unseen } from './announced.js';
import { lastRelease } from './release.js';

const changelog = readFileSync(join(repoFolder(), 'CHANGELOG.md'), 'utf8');

test('what is kept is of the last release, or of the first one that is to be', () => {
  expect(lastRelease().version).toBe(newestReleased(changelog) ?? packageVersion());
});

test('the last release is the topmost of the changelog', () => {
  expect(newestReleased('# Changelog\n\n## Unreleased\n\n- This.\n')).toBeUndefined();
  for (const heading of ['## 0.2.0 - 2026-01-02', '## [0.2.0] - 2026-01-02'])
    expect(newestReleased(`## Unreleased\n\n${heading}\n\n## 0.1.0\n`)).toBe('0.2.0');
});

test('the changelog names what upgrades change, and nothing else', () => {
  expect(namedIn(changelog, lastRelease().version).sort()).toEqual(
    announced()
      .map(({ id }) => id)
      .sort(),
  );
});

describe('what an upgrade does to an object', () => {
  const deployment = (image: string, hash: string) => ({
    ...{ apiVersion: 'apps/v1', kind: 'Deployment', status: { at: hash } },
    metadata: { name: 'web', namespace: 'shop', annotations: { [APPLIED_HASH_ANNOTATION]: hash } },
    spec: { template: { spec: { containers: [{ name: 'web', image }] } } },
  });
  const was = deployment('web:1', 'a');

  test('is told by fields, whatever the items of lists are called', () => {
    expect(observed(was, deployment('web:2', 'b'))).toEqual({
      ...{ object: 'Deployment shop/web', kind: 'Deployment' },
      fields: ['.spec.template.spec.containers[].image'],
    });
    expect(observed(was, deployment('web:1', 'b'))?.fields).toEqual(['hash']);
    expect(observed(was, { ...was, status: {} })).toBeUndefined();
    expect(observed(undefined, was)?.fields).toEqual(['created']);
    expect(observed(was, undefined)?.fields).toEqual(['deleted']);
  });

  test('has to be announced, field by field, and what is announced has to be so', () => {
    const change = observed(was, deployment('web:2', 'b'))!;
    const image = { id: 'image', kind: 'Deployment', fields: ['.spec.template.spec.containers[].image'] };

    expect(unannounced([change], [])).toEqual([
      'Deployment shop/web: .spec.template.spec.containers[].image',
    ]);
    expect(unannounced([change], [{ ...image, kind: 'Service' }])).toHaveLength(1);
    expect(unannounced([change], [image])).toEqual([]);
    expect(unseen([change], [image])).toEqual([]);
    expect(unseen([], [image])).toEqual(['image: Deployment .spec.template.spec.containers[].image']);
  });

  test('counts in the changelog where it has come after the release', () => {
    const text = '## Unreleased\n- **Upgrade `a`** Pods restart.\n## 0.1.0\n- **Upgrade `b`** The hash.\n';
    expect(namedIn(text, '0.1.0')).toEqual(['a']);
    expect(namedIn(text, '0.2.0')).toEqual(['a', 'b']);
  });
});
