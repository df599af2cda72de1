import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { expect, test } from 'vitest';
import { defineCrd } from '../../src/author/define-crd.js';
import { defineKind } from '../../src/author/define-kind.js';
import type { AnyObject } from '../../src/contract/object.js';
import type { References, PropsOf } from '../../src/author/typed-crd.js';
import { render } from '../../src/testing/render.js';
import { synth } from '../../src/cli/synth/synth.js';
import { readReferences } from '../../src/render/references.js';
import { parseResourceList, renderList } from '../../src/cli/synth/resource-list.js';
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
  // Only a cluster has the UID that keys the checksum, or a file that was written from it.
  const template = { metadata: { annotations: { 'checksum/tls': 'unknown-without-a-cluster' } } };
  expect(deployment).toMatchObject({ spec: { template } });
  const read = (key: string, uid = 'u') => {
    const one = secret({ data: { key }, metadata: { name: 'tls', uid } });
    return JSON.stringify(made([one, ...(objects as object[]).slice(1)] as never)[0]);
  };
  expect(read('b25l')).toMatch(/"checksum\/tls":"keyed-[0-9a-f]{32}"/);
  for (const other of [read('dHdv'), read('b25l', 'v')]) expect(other).not.toBe(read('b25l'));
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
  const elsewhere = [secret({ metadata: { name: 'tls', namespace: 'other' } })] as never;
  await expect(synth({ ...options, references: elsewhere })).rejects.toThrow(
    "Site shop/web refers to Secret shop/tls (references.tls), which isn't there, but one of this name is given in the namespace other: without a cluster,",
  );
  await expect(readReferences([`${folder}/wrong.yaml`], false)).rejects.toThrow(
    'wrong.yaml: document 1, line 1: no object; give apiVersion, kind and metadata.name',
  );
  const lines = ['a: eA==', 'b: null', 'c: "%%%"', 'd: |', '  eA==', 'e: 5'].map((line) => `  ${line}\n`);
  const header = 'apiVersion: v1\nkind: Secret\nmetadata: {name: tls}\ndata:\n';
  const bad = folderWith({ 'bad.yaml': header + lines.join('') });
  const remedy = "isn't base64; encode it, or give it as text in stringData";
  await expect(readReferences([bad], false)).rejects.toThrow(
    `${bad}/bad.yaml: document 1, line 7: data.c: ${remedy}\n${bad}/bad.yaml: document 1, line 10: data.e: ${remedy}`,
  );
});

test('a KRM function finds them in the list', async () => {
  const items = [cr, ...(objects as object[])];
  const list = { apiVersion: 'config.kubernetes.io/v1', kind: 'ResourceList', items };
  const { text, problems } = await renderList(parseResourceList(JSON.stringify(list)), { kinds: [kind] });
  expect(problems).toEqual([]);
  expect(text).toContain('checksum/tls');
});

const linkCrd = defineCrd({
  ...{ group: 'test.example.com', kind: 'Link', description: 'A part of a chain.' },
  spec: {
    type: 'object',
    properties: { before: { type: 'string' }, size: { type: 'integer', default: 3 } },
  },
});
const LINK = { apiVersion: 'test.example.com/v1', kind: 'Link' } as const;
const linkReferences = {
  before: { ...LINK, name: (cr) => cr.spec.before },
  self: { ...LINK, name: (cr) => cr.metadata.name },
} as const satisfies References<typeof linkCrd>;

const wordOf = (object: AnyObject | undefined): unknown =>
  (object?.status as { readonly word?: string } | undefined)?.word;

/** Refers to another custom resource of its kind, and to itself. */
class Link extends Construct {
  constructor(
    scope: Construct,
    id: string,
    { metadata: { name }, references }: PropsOf<typeof linkCrd, { references: typeof linkReferences }>,
  ) {
    super(scope, id);
    const [before, self] = [references.before, references.self].map((each) =>
      JSON.stringify([(each?.spec as { size?: number } | undefined)?.size, wordOf(each)]),
    );
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { before, self } };
    new ApiObject(this, 'Map', object);
  }
}
const chained = defineKind({
  ...{ crd: linkCrd, references: linkReferences, construct: Link },
  children: [{ apiVersion: 'v1', kind: 'ConfigMap' }],
});
const link = (name: string, rest: object): AnyObject => ({
  ...{ ...LINK, metadata: { name, namespace: 'shop' } },
  ...rest,
});
const chain = [link('second', { spec: { before: 'first', size: 5 } }), link('first', { spec: {} })];

test('custom resources that are given together are found by each other, with their defaults', async () => {
  const folder = folderWith({ 'all.yaml': chain.map((each) => JSON.stringify(each)).join('\n---\n') });
  const options = { kinds: [chained], sources: [`${folder}/all.yaml`] };
  const textOf = async (references?: readonly AnyObject[]) =>
    (await synth({ ...options, ...(references && { references }) })).map(({ text }) => text).join();

  expect(await textOf()).toContain('before: "[3,null]"\n  self: "[5,null]"');
  // One that is given as a reference says more, as its status.
  const live = link('first', { spec: { size: 7 }, status: { word: 'ready' } });
  expect(await textOf([live])).toContain('[7,"ready"]');
  expect(render(chained, chain[1]!)[0]).toMatchObject({ data: { self: '[3,null]' } });

  const list = { apiVersion: 'config.kubernetes.io/v1', kind: 'ResourceList', items: chain };
  const { text } = await renderList(parseResourceList(JSON.stringify(list)), { kinds: [chained] });
  expect(text).toContain('before: "[3,null]"');
});

test('objects that are referred to may stand in the same file; others are refused', async () => {
  const all = (more: object[] = []): string =>
    folderWith({
      'all.json': [cr, ...(objects as object[]), ...more].map((one) => JSON.stringify(one)).join('\n---\n'),
    });
  const [file] = await synth({ kinds: [kind], sources: [all()] });
  expect(file?.text).toContain('color: black');
  const other = { apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { name: 'a' } };
  await expect(synth({ kinds: [kind], sources: [all([other])] })).rejects.toThrow('StatefulSet');
  const alone = folderWith({ 'a.json': JSON.stringify((objects as object[])[0]) });
  await expect(synth({ kinds: [kind], sources: [alone] })).rejects.toThrow(
    'there is no custom resource in it',
  );
});
