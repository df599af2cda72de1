import { describe, expect, test } from 'vitest';
import { ClusterClient } from '../../src/cli/cluster-client.js';
import type { ApiRequest, ApiResponse, Transport } from '../../src/engine/transport.js';

const all = ['delete', 'list'];
const named = (name: string, kind: string, verbs = all, namespaced = true): object => ({
  ...{ name, kind, namespaced, verbs },
});
const group = (...versions: readonly string[]): object => ({
  versions: versions.map((groupVersion) => ({ groupVersion })),
  preferredVersion: { groupVersion: versions[0] },
});

const answers: Readonly<Record<string, unknown>> = {
  '/apis': { groups: [group('a.io/v1', 'a.io/v1beta1'), group('down.io/v1')] },
  '/api/v1': {
    resources: [
      ...[named('pods', 'Pod'), named('pods/status', 'Pod'), named('nodes', 'Node', all, false)],
      named('bindings', 'Binding', ['create']),
    ],
  },
  '/apis/a.io/v1': { resources: [named('as', 'A'), named('bs', 'B')] },
  '/apis/a.io/v1beta1': { resources: [named('bs', 'B'), named('olds', 'Old')] },
};

function clientOf(refusal: ApiResponse | Error, asked: ApiRequest[] = []): ClusterClient {
  const transport: Transport = {
    host: 'cluster',
    request: (request) => {
      asked.push(request);
      const { path } = request;
      if (path in answers) return Promise.resolve({ status: 200, body: answers[path] });
      return refusal instanceof Error ? Promise.reject(refusal) : Promise.resolve(refusal);
    },
    stream: () => Promise.reject(new Error('nothing is watched')),
    close: () => Promise.resolve(),
  };
  return new ClusterClient(transport);
}

test('a list of metadata asks for nothing else, so that no Secret is read', async () => {
  const asked: ApiRequest[] = [];
  const page = { metadata: { resourceVersion: '1' }, items: [{ metadata: { name: 'a' } }] };
  const secrets = { apiVersion: 'v1', kind: 'Secret', plural: 'secrets', namespaced: true };
  const client = clientOf({ status: 200, body: page }, asked);

  expect(await client.list(secrets, { namespace: 'ops', metadataOnly: true })).toEqual([
    { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'a' } },
  ]);
  await client.list(secrets, { namespace: 'ops' });
  expect(asked.map(({ accept }) => accept)).toEqual([
    'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1',
    undefined,
  ]);
});

test('an empty list of metadata, which has null for its items, has none', async () => {
  const client = clientOf({ status: 200, body: { metadata: { resourceVersion: '1' }, items: null } });
  const secrets = { apiVersion: 'v1', kind: 'Secret', plural: 'secrets', namespaced: true };
  expect(await client.list(secrets, { metadataOnly: true })).toEqual([]);
});

const served = ['v1 Pod', 'a.io/v1 A', 'a.io/v1 B', 'a.io/v1beta1 Old'];

describe('namespacedTypes', () => {
  test.each([
    ['is told of where the API behind it is down', 503, ['down.io/v1']],
    ['is told of where it may not be looked at', 403, ['down.io/v1']],
    ['is nothing where it has gone meanwhile', 404, []],
  ])('has every type of whatever version once; a group %s', async (_, status, unseen) => {
    const found = await clientOf({ status, body: 'service unavailable' }).namespacedTypes();

    expect(found.types.map(({ apiVersion, kind }) => `${apiVersion} ${kind}`)).toEqual(served);
    expect(found.unseen).toEqual(unseen);
  });

  test('fails where the API server itself gives no answer', async () => {
    await expect(clientOf(new Error('ECONNREFUSED')).namespacedTypes()).rejects.toMatchObject({
      reason: 'Unreachable',
    });
  });
});

describe('a type on which there is no right', () => {
  const refused = { status: 403, body: { kind: 'Status', reason: 'Forbidden', message: 'forbidden' } };
  const typeOf = (apiVersion: string, plural: string) => ({
    apiVersion,
    kind: 'A',
    plural,
    namespaced: true,
  });

  test('is none where it is not served: that is told to everybody, and a refusal comes first', async () => {
    const client = clientOf(refused);
    expect(await client.list(typeOf('a.io/v1', 'unknowns'))).toEqual([]);
    expect(await client.find(typeOf('a.io/v1', 'unknowns'), 'ops/a')).toBeUndefined();
  });

  test.each([
    ['it is served', 'a.io/v1', 'as'],
    ['nobody may see what is served', 'down.io/v1', 'downs'],
  ])('is an error where %s', async (_, apiVersion, plural) => {
    const client = clientOf(refused);
    const type = typeOf(apiVersion, plural);
    await expect(client.list(type)).rejects.toMatchObject({ reason: 'Forbidden' });
    await expect(client.find(type, 'ops/a')).rejects.toMatchObject({ reason: 'Forbidden' });
  });
});
