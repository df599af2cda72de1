import { describe, expect, test } from 'vitest';
import { asCliError, requireVersion } from '../../src/cli/cluster.js';
import { CliError } from '../../src/cli/output.js';
import { OperatorError } from '../../src/contract/error.js';
import { ApiError, GRANT } from '../../src/client/api-error.js';
import { ClusterClient, whileThrottled } from '../../src/client/cluster.js';
import { THROTTLED } from '../../src/client/retry.js';
import type { ApiRequest, ApiResponse, Transport } from '../../src/client/transport.js';
import { failure } from '../engine/support/builders.js';

type Answer = (request: ApiRequest) => ApiResponse | Error;

function transportThat(answer: Answer): Transport {
  return {
    host: 'api.test',
    request: (request) => {
      const answered = answer(request);
      return answered instanceof Error ? Promise.reject(answered) : Promise.resolve(answered);
    },
    stream: () => Promise.reject(new Error('no streams')),
    close: () => Promise.resolve(),
  };
}

const clusterThat = (answer: ApiResponse | Error) => new ClusterClient(transportThat(() => answer));

const versioned = (minor: string) => ({ status: 200, body: { major: '1', minor } });

test.each<[what: string, answer: ApiResponse | Error, refusal: string | undefined]>([
  ['1.34', versioned('34'), undefined],
  ['1.34+', versioned('34+'), undefined],
  ['1.36-beta.1', versioned('36-beta.1'), undefined],
  ['none that may be read', failure(403, 'Forbidden', 'not you'), undefined],
  ['1.33+', versioned('33+'), 'The API server at api.test is of Kubernetes 1.33; 1.34 or newer is needed: '],
  ['a page', { status: 200, body: 'a page' }, 'What answers at api.test is no Kubernetes API server; '],
  ['another API', { status: 200, body: { a: 1 } }, 'What answers at api.test is no Kubernetes API server; '],
  [
    'none, of an address',
    new Error('connect ECONNREFUSED'),
    "The cluster at api.test doesn't answer: connect ECONNREFUSED; check --kubeconfig and --context, and",
  ],
  [
    'none, of two addresses',
    new AggregateError([new Error('connect ECONNREFUSED ::1:1'), new Error('b')], ''),
    "The cluster at api.test doesn't answer: connect ECONNREFUSED ::1:1; check",
  ],
  [
    'none without credentials',
    failure(401, 'Unauthorized', 'Unauthorized'),
    'Get /version: Unauthorized; log in',
  ],
])('of the versions of an API server, %s', async (_, answer, refusal) => {
  const error = await requireVersion(clusterThat(answer), 'api.test').catch((thrown: unknown) => thrown);
  const { exitCode, message } = (asCliError(error) ?? {}) as Partial<CliError>;
  expect(message?.slice(0, refusal?.length)).toBe(refusal);
  expect(exitCode).toBe(refusal === undefined ? undefined : 3);
});

test('bad input keeps all of its lines, and a refusal has one, with its remedy', () => {
  const bad = new OperatorError({ reason: 'InvalidInput', message: 'a\nb' });
  expect(asCliError(bad)).toMatchObject({ lines: ['a', 'b'], exitCode: 2 });
  const missing = new OperatorError({ reason: 'KindNotServed', message: 'List widgets: 404 page not found' });
  expect(asCliError(missing)).toMatchObject({
    lines: [
      'List widgets: 404 page not found; install it with "reconstruct install --apply" and the options in use, or apply the CRD',
    ],
    exitCode: 3,
  });
});

test.each([
  [
    'User "jane" cannot list resource "deployments" in API group "apps" at the cluster scope',
    'ask an admin to give jane that right; "kubectl auth can-i list deployments.apps --all-namespaces" shows it',
  ],
  [
    'User "system:serviceaccount:ci:bot" cannot patch resource "services/status" in API group "" in the namespace "shop"',
    'ask an admin to give system:serviceaccount:ci:bot that right; "kubectl auth can-i patch services --subresource status --namespace shop" shows it',
  ],
  [
    "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>",
    'ask an admin for the right to update the subresource "finalizers" of its kind',
  ],
  [
    'user "jane" is attempting to grant RBAC permissions not currently held',
    'use credentials that have that right, such as those of cluster-admin, or ask an admin for it',
  ],
])('a person who lacks a right is not sent to "install": %s', (objection, remedy) => {
  const message = `it is forbidden: ${objection}`;
  const refused = new ApiError('Try', failure(403, 'Forbidden', message));
  expect(asCliError(refused)).toMatchObject({
    lines: [`The cluster refuses: ${message}; ${remedy}`],
    exitCode: 3,
  });
  const known = new CliError(`Try: ${message}; ${GRANT}`, 3);
  expect((asCliError(known) as CliError).message).not.toContain('reconstruct install');
});

test('a server that asks to come again later is asked again, five times in all', async () => {
  let asked = 0;
  const busyFor = (times: number): Transport =>
    whileThrottled(
      transportThat(() =>
        asked++ < times ? { status: 429, body: '', retryAfterSeconds: 0 } : { status: 200, body: 'ok' },
      ),
      THROTTLED.command,
    );
  const get = { method: 'GET', path: '/api/v1/pods' } as const;
  expect(await busyFor(1).request(get)).toMatchObject({ status: 200 });
  asked = 0;
  expect(await busyFor(9).request(get)).toMatchObject({ status: 429 });
  expect(asked).toBe(5);
});

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
  const transport = transportThat((request) => {
    asked.push(request);
    const { path } = request;
    return path in answers ? { status: 200, body: answers[path] } : refusal;
  });
  return new ClusterClient(transport);
}

test('a list of metadata asks for nothing else, so that no Secret is read', async () => {
  const asked: ApiRequest[] = [];
  const items = [{ metadata: { name: 'a' } }];
  const client = clientOf({ status: 200, body: { metadata: { resourceVersion: '1' }, items } }, asked);
  const secrets = { apiVersion: 'v1', kind: 'Secret', plural: 'secrets', namespaced: true };

  await client.list(secrets, { namespace: 'ops', metadataOnly: true });
  expect(asked[0]?.accept).toBe('application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1');
});

test('a webhook without dry runs keeps no object from what would be deleted', async () => {
  const pods = { apiVersion: 'v1', kind: 'Pod', plural: 'pods', namespaced: true };
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { namespace: 'a', name: 'a', uid: 'u' } };
  const refusal = failure(400, 'BadRequest', 'admission webhook "a.b" does not support dry run');
  const transport = transportThat(({ method }) => (method === 'GET' ? { status: 200, body: pod } : refusal));
  const client = new ClusterClient(transport);
  await client.delete(pods, pod, 'Background', true);
  await expect(client.delete(pods, pod, 'Background')).rejects.toThrow('does not support dry run');
});

const served = ['v1 Pod', 'a.io/v1 A', 'a.io/v1 B', 'a.io/v1beta1 Old'];

describe('namespacedTypes', () => {
  test.each([
    ['is reported where the API behind it is down', 503, ['down.io/v1']],
    ['is reported where it may not be read', 403, ['down.io/v1']],
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

  test('is none where it is not served: discovery is open to all, and a refusal comes first', async () => {
    const client = clientOf(refused);
    expect(await client.list(typeOf('a.io/v1', 'unknowns'))).toEqual([]);
    expect(await client.find(typeOf('a.io/v1', 'unknowns'), 'ops/a')).toBeUndefined();
  });

  test.each([
    ['it is served', 'a.io/v1', 'as'],
    ['discovery is refused', 'down.io/v1', 'downs'],
  ])('is an error where %s', async (_, apiVersion, plural) => {
    const client = clientOf(refused);
    const type = typeOf(apiVersion, plural);
    await expect(client.list(type)).rejects.toMatchObject({ reason: 'Forbidden' });
    await expect(client.find(type, 'ops/a')).rejects.toMatchObject({ reason: 'Forbidden' });
  });
});
