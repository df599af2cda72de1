import { expect, test } from 'vitest';
import { render } from '../../src/testing/render.js';
import { synth } from '../../src/synth/synth.js';
import { readReferences } from '../../src/synth/references.js';
import { parseResourceList, renderList } from '../../src/synth/resource-list.js';
import { loadKind } from '../support/bundle.js';
import { folderWith } from './fixtures.js';

const { kind } = await loadKind('test/support/kinds/site.config.mjs');
const cr = {
  ...{ apiVersion: 'test.example.com/v1', kind: 'Site', metadata: { name: 'web', namespace: 'shop' } },
  spec: { secret: 'tls', theme: 'dark', themeNamespace: 'themes', tier: 'web' },
};
const secret = (value: object): object => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'tls' },
  ...value,
});
const service = (name: string, namespace: string, tier: string): object => ({
  ...{ apiVersion: 'v1', kind: 'Service', metadata: { name, namespace, labels: { tier } }, spec: {} },
});
const objects = [
  secret({ stringData: { key: 'one' } }),
  {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'dark', namespace: 'themes' },
    data: { color: 'black' },
  },
  {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'dark', namespace: 'shop' },
    data: { color: 'red' },
  },
  ...[
    service('b', 'shop', 'web'),
    service('a', 'shop', 'web'),
    service('c', 'shop', 'db'),
    service('d', 'other', 'web'),
  ],
] as never;

const made = (references = objects) => render(kind, cr, { references });

test('without a cluster, references are looked up among the objects that are given', () => {
  const [deployment, config] = made();
  expect(config).toMatchObject({
    data: { color: 'black', backends: 'a,b', secret: 'apiVersion,checksum,kind,metadata,type' },
  });
  // As the API server stores it.
  const stored = [secret({ data: { key: 'b25l' } }), ...(objects as object[]).slice(1)];
  expect(made(stored as never)[0]).toEqual(deployment);
  const changed = [secret({ data: { key: 'dHdv' } }), ...(objects as object[]).slice(1)];
  expect(made(changed as never)[0]).not.toEqual(deployment);
  // An optional one may be missing.
  expect(made([secret({})] as never)[1]).toMatchObject({ data: { color: 'none', backends: '' } });
});

test('synth reads them from files, and says which one is missing and how to give it', async () => {
  const folder = folderWith({ 'web.yaml': JSON.stringify(cr), 'wrong.yaml': 'kind: Secret' });
  const more = folderWith({
    'objects.yaml': (objects as object[]).map((object) => JSON.stringify(object)).join('\n---\n'),
  });
  const options = { kinds: [kind], sources: [`${folder}/web.yaml`] };
  const references = await readReferences([more], false);
  expect((await synth({ ...options, references })).map(({ text }) => text).join()).toContain('backends: a,b');
  await expect(synth(options)).rejects.toThrow(
    "Site shop/web refers to Secret shop/tls (references.tls), which isn't there: without a cluster, give it by --references, by { references } of render(), or by surroundings of the sweep",
  );
  await expect(readReferences([`${folder}/wrong.yaml`], false)).rejects.toThrow(
    'wrong.yaml: document 1, line 1: no object; give apiVersion, kind and metadata.name',
  );
});

test('a KRM function finds them in the list', async () => {
  const items = [cr, ...(objects as object[])];
  const list = { apiVersion: 'config.kubernetes.io/v1', kind: 'ResourceList', items };
  const { text, problems } = await renderList(parseResourceList(JSON.stringify(list)), { kinds: [kind] });
  expect(problems).toEqual([]);
  expect(text).toContain('checksum/tls');
});
