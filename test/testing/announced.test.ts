import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import type { AnyObject } from '../../src/contract/object.js';
import { requireAnnounced } from '../../src/testing/announced.js';
import { manifestText } from '../../src/validate/output.js';

const folder = mkdtempSync(join(tmpdir(), 'announced-'));
const changelog = join(folder, 'CHANGELOG.md');
const earlier = join(folder, 'earlier.yaml');
afterAll(() => {
  rmSync(folder, { recursive: true });
});

const deployment = (image: string, replicas = 1, name = 'web'): AnyObject => ({
  ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name, namespace: 'shop' } },
  spec: { replicas, template: { spec: { containers: [{ name: 'web', image }] } } },
});
const before = [deployment('web:1'), deployment('web:1', 1, 'api')];
writeFileSync(earlier, manifestText(before));

function judged(
  news: string,
  after: readonly AnyObject[],
  from: Parameters<typeof requireAnnounced>[0]['before'] = before,
) {
  writeFileSync(
    changelog,
    `# Changelog\n\n## Unreleased\n\n${news}\n\n## [1.0.0]\n\n- Deployment: \`.spec.template\`\n`,
  );
  return () => {
    requireAnnounced({ before: from, after, announcedIn: changelog });
  };
}

test('a change that rolls pods is refused, with what to write, where the changelog of the next version lacks it', () => {
  const after = [deployment('web:2'), deployment('web:2', 1, 'api')];
  expect(judged('- Something else.', after)).toThrow(
    `Pods would be replaced, and ${changelog} doesn't announce it; write there:
- Deployment: rolls its pods (\`.spec.template.spec.containers[].image\`)
  of shop/web, shop/api`,
  );
  expect(judged('', after, earlier)).toThrow('of shop/web, shop/api');
  expect(judged('', after, pathToFileURL(earlier))).toThrow('of shop/web, shop/api');
});

test.each([
  ['the line that it asks for', '- Deployment: rolls its pods (`.spec.template.spec.containers[].image`)'],
  ['a field above', '- Pods of all Deployments are replaced\n  (`.spec.template`).'],
])('%s announces it', (_, news) => {
  expect(judged(news, [deployment('web:2'), before[1]!])).not.toThrow();
});

test.each([
  ['another kind', '- StatefulSet: `.spec.template`'],
  ['another field', '- Deployment: `.spec.template.spec.containers[].imagePullPolicy`'],
  ['a field that only begins alike', '- Deployment: `.spec.template.spec.cont`'],
  ['kind and field in two entries', '- Deployment: more.\n- New: `.spec.template`'],
])('%s does not', (_, news) => {
  expect(judged(news, [deployment('web:2')])).toThrow("doesn't announce it");
});

test('what leaves pods as they are needs no announcement: other fields, new objects, those without pods that go', () => {
  const service = { ...deployment('', 1), apiVersion: 'v1', kind: 'Service' };
  const after = [deployment('web:1', 3), deployment('web:2', 1, 'new'), before[1]!];
  expect(judged('', after, [...before, service])).not.toThrow();
});

test('what cannot be changed in place replaces pods, and a template that changes with it is announced, too', () => {
  const selected = (app: string, image: string) => {
    const { spec, ...one } = deployment(image);
    return { ...one, spec: { ...(spec as object), selector: { matchLabels: { app } } } };
  };
  expect(judged('', [selected('b', 'web:2')], [selected('a', 'web:1')])).toThrow(
    `- Deployment: rolls its pods (\`.spec.template.spec.containers[].image\`)
  of shop/web
- Deployment: rolls its pods (\`.spec.selector.matchLabels.app\`)
  of shop/web`,
  );
  const stateful = (storage: string) => ({
    ...{ apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { name: 'db', namespace: 'shop' } },
    spec: { volumeClaimTemplates: [{ metadata: { name: 'data' }, storage }] },
  });
  expect(judged('', [stateful('2Gi')], [stateful('1Gi')])).toThrow(
    'StatefulSet: rolls its pods (`.spec.volume',
  );
});

test('what goes takes its pods with it, also for another name', () => {
  const line = '- Deployment: deleted with its pods, or renamed (`.metadata.name`)';
  const after = [deployment('web:1', 1, 'site'), before[1]!];
  expect(judged('', after)).toThrow(`${line}\n  of shop/web`);
  expect(judged(line, after)).not.toThrow();
});
