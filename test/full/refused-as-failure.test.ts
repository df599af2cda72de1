import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { definitionType, resourceType } from '../../src/contract/resource.js';
import type { ResourceType } from '../../src/contract/resource.js';
import { ApiError, classify, REFUSED_AS_FAILURE } from '../../src/client/api-error.js';
import { APPLY, JSON_PATCH } from '../../src/client/api.js';
import { selfSignedCertificate } from '../../src/telemetry/certificate.js';
import { collection, configMaps, deny, eventually, putStatus, secrets } from '../support/cluster.js';
import type { Answer, Manifest } from '../support/cluster.js';
import { ownControlPlane } from '../support/test-clusters.js';

type Json = Readonly<Record<string, unknown>>;

/** With so few node ports that a Service can ask for more. */
const plane = ownControlPlane({
  apiOnly: true,
  apiServerArguments: ['--service-node-port-range=30000-30003'],
});
let namespace: string;

function object(apiVersion: string, kind: string, content: Json, name = 'refused'): Manifest {
  return { apiVersion, kind, ...content, metadata: { name, namespace, ...(content.metadata as object) } };
}

function applied(manifest: Manifest): Promise<Answer> {
  const path = `${collection(resourceType(manifest), namespace)}/${manifest.metadata.name}`;
  const query = { fieldManager: 'test', force: 'true' };
  return plane.cluster.send('PATCH', path, { body: manifest, contentType: APPLY, query });
}

const labels = { app: 'refused' };
const workload = (spec: Json, container: Json = {}, pod: Json = {}): Manifest =>
  object('apps/v1', 'Deployment', {
    spec: {
      ...{ replicas: 0, selector: { matchLabels: labels }, ...spec },
      template: {
        metadata: { labels },
        spec: { containers: [{ name: 'c', image: 'x', ...container }], ...pod },
      },
    },
  });
const secret = (content: Json): Manifest => object('v1', 'Secret', content);
const service = (spec: Json): Manifest => object('v1', 'Service', { spec });
const port = (content: Json): Manifest => service({ ports: [{ port: 80, ...content }] });
const claim = (storage: string): Manifest =>
  object('v1', 'PersistentVolumeClaim', {
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage } } },
  });
const lease = (renewTime: string): Manifest =>
  object('coordination.k8s.io/v1', 'Lease', { spec: { renewTime } });
const requests = (memory: unknown): Manifest => workload({}, { resources: { requests: { memory } } });
const widget = (spec: Json, name?: string): Manifest =>
  object('refused.example.com/v1', 'Widget', { spec }, name);

/** Objects that the API server answers with a 500 of that text, each time. Made late, since the namespace has to be known. */
const PROVOKED: Readonly<Record<keyof typeof REFUSED_AS_FAILURE, Readonly<Record<string, () => Manifest>>>> =
  {
    typedPatch: {
      'an unknown field': () => workload({ nothing: 1 }),
      'a number for a text': () => secret({ stringData: { key: 5 } }),
      'a text for a number': () => port({ port: '80' }),
      'a map for a list': () => workload({}, {}, { containers: {} }),
      'a map for a quantity': () => requests({}),
      'two variables of one name': () => workload({}, { env: [{ name: 'A' }, { name: 'A' }] }),
      'two equal items of a set': () => secret({ metadata: { finalizers: ['a.b/c', 'a.b/c'] } }),
      'a field that is not in the schema of a CRD': () => widget({ nothing: 1 }),
      'a type other than in the schema of a CRD': () => widget({ size: true }),
    },
    conversion: {
      'what is no base64': () => secret({ data: { key: 'not base64' } }),
      'a quantity with a space': () => requests('1 Gi'),
      'a quantity with an unknown unit': () => requests('1Gb'),
      'an empty quantity': () => requests(''),
      'a quantity of a volume with a space': () => claim('10GB '),
      'a fraction of a replica': () => workload({ replicas: 1.5 }),
      'a fraction of a port': () => port({ targetPort: 1.5 }),
      'a port that is no 32-bit integer': () => port({ targetPort: 1e12 }),
      'a time that is none': () => lease('yesterday'),
      'a time without microseconds': () => lease('2020-01-01T00:00:00Z'),
    },
    typedLive: { 'an object of an earlier schema': () => widget({ size: { large: 'no' } }, 'early') },
    tooLarge: { 'more than etcd takes': () => widget({ text: 'x'.repeat(1_800_000) }) },
    tooLargeToSend: { 'more than is sent to etcd': () => widget({ text: 'x'.repeat(2_500_000) }) },
    nodePorts: {
      'more ports than there are node ports': () =>
        service({
          type: 'NodePort',
          ports: Array.from({ length: 5 }, (_, index) => ({ name: `p${index}`, port: 80 + index })),
        }),
    },
    resourceVersion: {
      'a version that is no number': () => secret({ metadata: { resourceVersion: 'latest' } }),
    },
  };

function crd(plural: string, kind: string, versions: readonly Json[], more: Json = {}): Manifest {
  const [{ apiVersion, kind: type }, group] = [definitionType, 'refused.example.com'];
  const names = { plural, kind, listKind: `${kind}List` };
  const spec = { group, names, scope: 'Namespaced', versions, ...more };
  return { apiVersion, kind: type, metadata: { name: `${plural}.${group}` }, spec };
}

function version(name: string, storage: boolean, spec: Json): Json {
  const openAPIV3Schema = { type: 'object', properties: { spec: { type: 'object', ...spec } } };
  return { name, storage, served: true, schema: { openAPIV3Schema } };
}

const widgetCrd = (size: Json): Manifest =>
  crd('widgets', 'Widget', [version('v1', true, { properties: { size, text: { type: 'string' } } })]);

async function succeeds(act: () => Promise<Answer>): Promise<void> {
  await eventually(async () => {
    expect((await act()).body).toHaveProperty('metadata.uid');
  });
}

beforeAll(async () => {
  namespace = await plane.cluster.makeNamespace('refused-as-failure');
  // Without it, there are no pods.
  await applied(object('v1', 'ServiceAccount', {}, 'default'));
  await plane.cluster.create(definitionType, widgetCrd({ type: 'string' }));
  await succeeds(() => applied(widget({ size: 'large' }, 'early')));
  const large = { large: { type: 'string' } };
  const changed = widgetCrd({ type: 'object', properties: large });
  await plane.cluster.replaceSpec({ type: definitionType, name: changed.metadata.name }, changed.spec);
  await succeeds(() => applied(widget({ size: { large: 'yes' } }, 'late')));
});

describe.each(Object.entries(PROVOKED))('%s', (entry, objects) => {
  test.for(Object.entries(objects))('%s is refused for good', async ([, make]) => {
    const answers = [await applied(make()), await applied(make())];
    for (const { status, body } of answers) {
      const error = new ApiError('Apply', { status, body });
      expect(status).toBe(500);
      expect(error.refusedAsFailure, error.message).toBe(
        REFUSED_AS_FAILURE[entry as keyof typeof REFUSED_AS_FAILURE],
      );
      const reason = entry === 'nodePorts' ? 'NodePortConflict' : 'Invalid';
      expect(classify(error, 'Apply')).toMatchObject({ reason, retry: 'onChange' });
    }
  });
});

test.each([
  ['of what is counted', 'count/secrets', '0', () => secret({}), 0],
  ['of what is summed up', 'requests.storage', '1Gi', () => claim('2Gi'), 60_000],
])(
  'a quota %s has a reason and remedy of its own, and is retried',
  async (_, what, most, make, retryAfterMilliseconds) => {
    const hard = { [what]: most };
    const quota = object('v1', 'ResourceQuota', { spec: { hard } });
    const place = { type: resourceType(quota), name: 'refused', namespace };
    onTestFinished(() => plane.cluster.delete(place));
    await applied(quota);
    // As its controller would, which doesn't run here.
    await putStatus(plane.cluster, place, { hard, used: { [what]: '0' } });

    await eventually(async () => {
      const error = new ApiError('Apply', await applied(make()), what === 'count/secrets');
      expect(classify(error, 'Apply')).toMatchObject({
        ...{ reason: 'QuotaExceeded', retry: 'backoff', retryAfterMilliseconds },
        message: expect.stringMatching(/ exceeded quota: refused, .*; ask for less, or /) as string,
      });
    });
  },
);

test.each(['Invalid', 'Forbidden', 'RequestEntityTooLarge'])(
  'what a policy denies with the reason %s, the first by default, is refused',
  async (reason) => {
    const map = object('v1', 'ConfigMap', { data: { denied: 'yes' } }, 'by-policy');
    const path = collection(configMaps, namespace);
    const lift = await deny(plane.cluster, {
      ...{
        namespace,
        group: '',
        resource: 'configmaps',
        operation: 'CREATE',
        reason,
        message: 'not this one',
      },
      expression: "!has(object.data) || !('denied' in object.data)",
      probe: () => plane.cluster.send('POST', path, { body: map, query: { dryRun: 'All' } }),
    });
    onTestFinished(lift);
    const error = new ApiError('Apply', await applied(map));
    expect(classify(error, 'Apply')).toMatchObject({ reason: 'Refused', retry: 'onChange' });
    expect(error.message).toContain('not this one');
  },
);

test('what is said of a Secret without its values is shown to the end', async () => {
  const make = (metadata: Json = {}): Manifest =>
    object('v1', 'Secret', { metadata, data: { a: 'YQ==', b: 'YQ==' } }, 'said');
  const path = `${collection(secrets, namespace)}/said`;
  const as = (fieldManager: string, body: Manifest): Promise<Answer> =>
    plane.cluster.send('PATCH', path, { body, contentType: APPLY, query: { fieldManager } });
  const change = (body: Manifest): Promise<Answer> => plane.cluster.send('PUT', path, { body });
  const said = [await as('one', make({ uid: randomUUID() }))];
  await applied(make());
  await change(make({ labels }));
  const data = { a: 'Yg==', b: 'Yg==' };
  said.push(await as('one', { ...make(), data }), await change(make({ resourceVersion: '1' })));
  said.push(await plane.cluster.send('GET', path, { impersonate: 'without-rights' }));
  for (const { status, body } of said) {
    const error = new ApiError('Apply', { status, body }, true);
    expect([403, 409]).toContain(status);
    expect(error.said).toBe(String(body.message).replace(/uid [-0-9a-f]{36}/, 'uid a UID'));
  }
});

test('what fails for a conversion webhook may pass', async () => {
  const any = { 'x-kubernetes-preserve-unknown-fields': true };
  const clientConfig = { url: 'https://127.0.0.1:1/convert' };
  const conversion = { strategy: 'Webhook', webhook: { conversionReviewVersions: ['v1'], clientConfig } };
  const versions = [version('v1', true, any), version('v2', false, any)];
  await plane.cluster.create(definitionType, crd('converteds', 'Converted', versions, { conversion }));
  const [v1, v2] = ['v1', 'v2'].map((name) => object(`refused.example.com/${name}`, 'Converted', {}));
  await succeeds(() => applied(v1!));

  const error = new ApiError('Apply', await applied(v2!));

  expect(error.message).toContain('conversion webhook for');
  expect(classify(error, 'Apply')).toMatchObject({ reason: 'ServerOverloaded', retry: 'backoff' });
});

describe('a deletion', () => {
  const metadata = (): Manifest['metadata'] => ({ name: 'kept', namespace });
  const make = (): Promise<unknown> =>
    plane.cluster.apply(configMaps, { apiVersion: 'v1', kind: 'ConfigMap', metadata: metadata() }, 'test');
  const deletion = async (preconditions: Json = {}) => {
    const path = `${collection(configMaps, namespace)}/kept`;
    const body = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions };
    const answer = await plane.cluster.send('DELETE', path, { body });
    const { reason, retry, message } = classify(new ApiError('Delete', answer), 'Delete');
    return { status: answer.status, reason, retry, message };
  };

  test.each([{ resourceVersion: '1' }, { uid: 'another' }])(
    'of another state than %j is a conflict',
    async (seen) => {
      await make();
      expect(await deletion(seen)).toMatchObject({ status: 409, reason: 'Conflict', retry: 'now' });
    },
  );

  test.each([
    [409, undefined],
    [409, 'Conflict'],
    [404, 'NotFound'],
    [401, undefined],
  ] as const)('that a webhook denies with the code %i and the reason %s is refused', async (code, reason) => {
    const { cert, key } = (await selfSignedCertificate(Date.now())).current;
    await using server = createServer({ cert, key }, (request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const { uid } = (JSON.parse(Buffer.concat(chunks).toString()) as { request: { uid: string } })
          .request;
        const review = { uid, allowed: false, status: { code, reason, message: 'it is in use' } };
        response.setHeader('Content-Type', 'application/json');
        response.end(
          JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response: review }),
        );
      });
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port: listening } = server.address() as AddressInfo;
    const type = resourceType({
      ...{ apiVersion: 'admissionregistration.k8s.io/v1', kind: 'ValidatingWebhookConfiguration' },
      namespaced: false,
    });
    const name = `deny-${code}-${String(reason).toLowerCase()}`;
    await make();
    onTestFinished(() => plane.cluster.delete({ type, name }));
    await plane.cluster.create(type, {
      ...{ apiVersion: type.apiVersion, kind: type.kind, metadata: { name } },
      webhooks: [
        {
          ...{ name: 'deny.example.com', sideEffects: 'None', admissionReviewVersions: ['v1'] },
          clientConfig: {
            url: `https://127.0.0.1:${listening}/`,
            caBundle: Buffer.from(cert).toString('base64'),
          },
          rules: [
            { apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'], operations: ['DELETE'] },
          ],
        },
      ],
    });

    await eventually(async () => {
      await make();
      const refused = await deletion();
      expect(refused).toMatchObject({ status: code, reason: 'Refused', retry: 'onChange' });
      expect(refused.message).toContain(
        'admission webhook "deny.example.com" denied the request: it is in use',
      );
    });
  });
});

test.each([
  ['a test that fails', [{ op: 'test', path: '/metadata/resourceVersion', value: '1' }]],
  ['a test of what is not there', [{ op: 'test', path: '/data/b', value: '1' }]],
  ['a path that is not there', [{ op: 'add', path: '/metadata/labels/b', value: '1' }]],
])('a JSON patch with %s is a conflict', async (_, body) => {
  const map = object('v1', 'ConfigMap', { data: { a: '1' } }, `patched-${randomUUID()}`);
  await applied(map);
  const path = `${collection(configMaps, namespace)}/${map.metadata.name}`;
  const answer = await plane.cluster.send('PATCH', path, { body, contentType: JSON_PATCH });

  expect(answer.status).toBe(422);
  const error = new ApiError('Patch', answer);
  expect(classify(error, 'Patch'), JSON.stringify(answer.body)).toMatchObject({
    reason: 'Conflict',
    retry: 'now',
  });
});

test('a JSON patch of which the object would be invalid is refused', async () => {
  const map = object('v1', 'ConfigMap', { data: { a: '1' } }, `patched-${randomUUID()}`);
  await applied(map);
  const path = `${collection(configMaps, namespace)}/${map.metadata.name}`;
  const body = [{ op: 'add', path: '/data/not a key', value: '1' }];
  const answer = await plane.cluster.send('PATCH', path, { body, contentType: JSON_PATCH });

  expect(answer.status).toBe(422);
  expect(classify(new ApiError('Patch', answer), 'Patch')).toMatchObject({ reason: 'Invalid' });
});

const pods = resourceType({ apiVersion: 'v1', kind: 'Pod' });

function podSpec(spec: Json): Json {
  return { spec: { automountServiceAccountToken: false, containers: [{ name: 'c', image: 'x' }], ...spec } };
}

function volumeSpec(hostPath: Json): Json {
  const claim = { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'] };
  return { spec: { ...claim, hostPath } };
}

function clusterWide(apiVersion: string, kind: string): ResourceType {
  return resourceType({ apiVersion, kind, namespaced: false });
}

/** Two states of an object of which the API server doesn't let the first become the second. */
const FIXED: Readonly<Record<string, readonly [type: ResourceType, before: Json, after: Json]>> = {
  'the volumes of a pod': [pods, podSpec({}), podSpec({ volumes: [{ name: 'v', emptyDir: {} }] })],
  'the number of containers of a pod': [
    pods,
    podSpec({}),
    podSpec({ containers: ['c', 'd'].map((name) => ({ name, image: 'x' })) }),
  ],
  'the value of a PriorityClass': [
    clusterWide('scheduling.k8s.io/v1', 'PriorityClass'),
    { value: 1 },
    { value: 2 },
  ],
  'the parameters of a StorageClass': [
    clusterWide('storage.k8s.io/v1', 'StorageClass'),
    { provisioner: 'example.com/a', parameters: { a: '1' } },
    { provisioner: 'example.com/a', parameters: { a: '2' } },
  ],
  'the parameters of a VolumeAttributesClass': [
    clusterWide('storage.k8s.io/v1', 'VolumeAttributesClass'),
    { driverName: 'example.com', parameters: { a: '1' } },
    { driverName: 'example.com', parameters: { a: '2' } },
  ],
  'the source of a PersistentVolume': [
    clusterWide('v1', 'PersistentVolume'),
    volumeSpec({ path: '/a' }),
    volumeSpec({ path: '/b' }),
  ],
};

test.each(Object.entries(FIXED))(
  '%s can be changed by a new object alone',
  async (_, [type, before, after]) => {
    const metadata = { name: `fixed-${randomUUID()}` };
    const path = `${collection(type, type.namespaced ? namespace : undefined)}/${metadata.name}`;
    const apply = (content: Json): Promise<Answer> =>
      plane.cluster.send('PATCH', path, {
        body: { apiVersion: type.apiVersion, kind: type.kind, metadata, ...content },
        contentType: APPLY,
        query: { fieldManager: 'test' },
      });
    expect(await apply(before)).toMatchObject({ status: 201 });
    const answer = await apply(after);

    expect(answer.status).toBe(422);
    const error = new ApiError('Apply', answer);
    expect(classify(error, 'Apply'), JSON.stringify(answer.body)).toMatchObject({ reason: 'ImmutableField' });
  },
);
