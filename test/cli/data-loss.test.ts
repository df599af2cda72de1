import { expect, test } from 'vitest';
import { refuseDataLoss } from '../../src/cli/data-loss.js';
import type { CustomResourceDefinition, StructuralSchema } from '../../src/contract/crd.js';
import type { AnyObject } from '../../src/contract/object.js';
import type { DefinitionChange } from '../../src/install/apply.js';
import type { ClusterApi } from '../../src/client/cluster.js';

type Fields = Readonly<Record<string, StructuralSchema>>;

const text = { type: 'string' } as const;
const listOf = (fields: Fields): StructuralSchema => ({
  type: 'array',
  items: { type: 'object', properties: fields },
});

function definition(versions: Readonly<Record<string, Fields>>): CustomResourceDefinition {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'books.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { kind: 'Book', plural: 'books' },
      versions: Object.entries(versions).map(([name, properties], index) => ({
        ...{ name, served: true, storage: index === 0 },
        schema: {
          openAPIV3Schema: { type: 'object', properties: { spec: { type: 'object', properties } } },
        },
      })),
    },
  };
}

function book(name: string, spec: object): AnyObject {
  return { apiVersion: 'example.com/v1', kind: 'Book', metadata: { namespace: 'shop', name }, spec };
}

async function refusal(
  change: DefinitionChange,
  objects: readonly AnyObject[],
): Promise<readonly string[] | undefined> {
  const cluster = { list: () => Promise.resolve(objects) } as unknown as ClusterApi;
  const refused = await refuseDataLoss([change], cluster).then(
    () => undefined,
    (error: unknown) => error as { readonly lines: readonly string[] },
  );
  return refused?.lines.slice(0, -1);
}

const of = 'CustomResourceDefinition books.example.com:';

test('a renamed field of list items is named once, with a few of the objects that have it', async () => {
  const objects = ['a', 'b', 'c', 'd', 'e'].map((name, index) =>
    book(name, { pages: index === 0 ? [] : [{ title: 'one' }, { title: 'two' }] }),
  );
  const present = definition({ v1: { pages: listOf({ title: text }) } });
  const next = definition({ v1: { pages: listOf({ heading: text }) } });
  expect(await refusal({ present, next }, objects)).toEqual([
    `${of} spec.pages[0].title would be dropped from 4 of 5 Book objects: shop/b, shop/c, shop/d, ...`,
  ]);
});

test('the entries of a map are one place', async () => {
  const mapOf = (type: 'string' | 'integer'): Fields => ({
    labels: { type: 'object', additionalProperties: { type } },
  });
  const change = { present: definition({ v1: mapOf('string') }), next: definition({ v1: mapOf('integer') }) };
  const objects = [book('a', { labels: { x: 'one', y: 'two' } }), book('b', { labels: { z: 'three' } })];
  expect(await refusal(change, objects)).toEqual([
    `${of} spec.labels.x would be invalid in 2 of 2 Book objects: shop/a, shop/b ("one" is a string, not an integer)`,
  ]);
});

test("what can't be read, since no version is served, is not changed", async () => {
  const { spec, ...rest } = definition({ v1: { title: text } });
  const versions = spec.versions.map((version) => ({ ...version, served: false }));
  const present = { ...rest, spec: { ...spec, versions } };
  expect(await refusal({ present, next: definition({ v1: { heading: text } }) }, [])).toEqual([
    `${of} no version of it is served, so its stored objects can't be read and checked; serve one first`,
  ]);
  expect(await refusal({ present, next: definition({ v1: { title: text } }) }, [])).toBe(undefined);
});

test('a version in which objects are stored is named before it goes', async () => {
  const present = { ...definition({ v2: {}, v1: {} }), status: { storedVersions: ['v1', 'v2'] } };
  expect(await refusal({ present, next: definition({ v2: {} }) }, [book('a', {})])).toEqual([
    `${of} the version v1, in which objects are stored, would be removed, which the API server refuses: keep it with served: true (1 Book object)`,
  ]);
});

test('what was invalid before, a new default, and a schema without objects are no loss', async () => {
  const present = definition({ v1: { count: { type: 'integer', minimum: 1 } } });
  const stricter: Fields = {
    count: { type: 'integer', minimum: 2 },
    title: { ...text, default: 'none' },
  };
  expect(await refusal({ present, next: definition({ v1: stricter }) }, [book('a', { count: 0 })])).toBe(
    undefined,
  );
  expect(await refusal({ present, next: definition({ v1: {} }) }, [])).toBe(undefined);
  expect(await refusal({ present, next: definition({ v1: {} }) }, [book('a', { count: 3 })])).toEqual([
    `${of} spec.count would be dropped from 1 of 1 Book object: shop/a`,
  ]);
});

test('a field below one that is called as a keyword is no less lost', async () => {
  const below = (fields: Fields): Fields => ({ not: { type: 'object', properties: fields } });
  const present = definition({ v1: below({ oldField: text, port: { type: 'integer' } }) });
  const next = definition({ v1: below({ port: { type: 'integer' } }) });
  expect(await refusal({ present, next }, [book('a', { not: { port: 1, oldField: 'x' } })])).toEqual([
    `${of} spec.not.oldField would be dropped from 1 of 1 Book object: shop/a`,
  ]);
});

test('a field with a default is renamed in two releases, the first of which has no default', async () => {
  const withDefault = definition({ v1: { host: { ...text, default: 'localhost' } } });
  const both = definition({ v1: { host: text, hostname: text } });
  const renamed = definition({ v1: { hostname: { ...text, default: 'localhost' } } });
  const before = [book('a', { host: 'localhost' }), book('b', { host: 'web' })];
  const moved = [book('a', { hostname: 'localhost' }), book('b', { hostname: 'web' })];
  expect(await refusal({ present: withDefault, next: both }, before)).toBeUndefined();
  expect(await refusal({ present: both, next: renamed }, before)).toEqual([
    `${of} spec.host would be dropped from 2 of 2 Book objects: shop/a, shop/b`,
  ]);
  expect(await refusal({ present: both, next: renamed }, moved)).toBeUndefined();
});
