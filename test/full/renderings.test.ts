import { ApiObject, JsonPatch } from 'cdk8s';
import { Construct } from 'constructs';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import type { Condition } from '../../src/contract/conditions.js';
import { defineKind } from '../../src/contract/define-kind.js';
import type { AnyObject } from '../../src/contract/object.js';
import { rulesFor } from '../../src/install/rules.js';
import { Operator } from '../../src/testing/operator.js';
import { accountKubeconfig } from './support/accounts.js';
import { Cluster } from './support/cluster.js';
import { installCrd } from './support/crds.js';
import { acceptedVariants } from './support/empty-fields.js';
import { requestsFromNowOn } from './support/requests.js';
import { grant } from './support/rights.js';

const pod = {
  metadata: { labels: { app: 'web' } },
  spec: {
    restartPolicy: 'Always',
    containers: [
      {
        ...{ name: 'web', image: 'example.com/web:1' },
        env: [{ name: 'A', valueFrom: { configMapKeyRef: { name: 'a', key: 'a' } } }],
        ports: [{ containerPort: 80 }],
        volumeMounts: [{ name: 'data', mountPath: '/data' }],
        livenessProbe: { httpGet: { port: 80 } },
      },
    ],
    volumes: [{ name: 'data', configMap: { name: 'data' } }],
    topologySpreadConstraints: [{ maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'ScheduleAnyway' }],
  },
};
const backend = { service: { name: 'web', port: { number: 80 } } };

/** The least of each kind that is accepted, with an item in most lists. */
const bases: readonly [AnyObject, AnyObject, ...AnyObject[]] = [
  {
    ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'base' } },
    spec: { replicas: 0, selector: { matchLabels: { app: 'web' } }, template: pod },
  },
  {
    ...{ apiVersion: 'batch/v1', kind: 'CronJob', metadata: { name: 'base' } },
    spec: {
      ...{ schedule: '0 0 1 1 *', suspend: true },
      jobTemplate: { spec: { template: { ...pod, spec: { ...pod.spec, restartPolicy: 'Never' } } } },
    },
  },
  {
    ...{ apiVersion: 'v1', kind: 'Service', metadata: { name: 'base' } },
    spec: { ports: [{ port: 80 }] },
  },
  {
    ...{ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata: { name: 'base' } },
    spec: { podSelector: { matchLabels: { app: 'web' } }, egress: [{ to: [{ podSelector: {} }] }] },
  },
  {
    ...{ apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', metadata: { name: 'base' } },
    spec: { rules: [{ http: { paths: [{ path: '/', pathType: 'Prefix', backend }] } }] },
  },
];

/** What the API server stores in another form than it was sent, or fills in. */
function container(more: object, inPod: object = {}): AnyObject {
  const containers = [{ name: 'web', image: 'example.com/web:1', ...more }];
  const template = { metadata: { labels: { app: 'web' } }, spec: { containers, ...inPod } };
  const spec = { replicas: 0, selector: { matchLabels: { app: 'web' } }, template };
  return { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'base' }, spec };
}
const normalised: readonly AnyObject[] = [
  container({ resources: { limits: { cpu: 1, memory: '1024Mi' }, requests: { cpu: '1000m', memory: 1e9 } } }),
  container({ env: [{ name: 'A', value: '' }, { name: 'B' }], ports: [{ containerPort: 80 }] }),
  container({ ports: [{ containerPort: 53, protocol: 'UDP' }, { containerPort: 53 }] }),
  container({ env: [], resources: { claims: [] } }),
  container({ env: [], envFrom: [], args: [], command: [], resources: { limits: {}, claims: [] } }),
  container({ securityContext: {} }, { securityContext: {}, affinity: { nodeAffinity: {} } }),
  container({}, { imagePullSecrets: [{}] }),
  container({}, { volumes: [{ name: 'a' }, { name: 'b', emptyDir: {} }] }),
  { ...container({}), status: {} },
  { ...container({}), status: { replicas: 3 } },
  {
    ...{ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'base', labels: {} } },
    ...{ stringData: { a: '', b: 'text' }, data: {} },
  },
];

interface Pods {
  readonly spec: object;
}

function withPods(cronJob: AnyObject, { spec, ...rest }: Pods): AnyObject {
  const template = { ...rest, spec: { ...spec, restartPolicy: 'Never' } };
  return {
    ...cronJob,
    spec: { ...(cronJob.spec as object), jobTemplate: { spec: { template } } },
  };
}

interface LiveResource extends AnyObject {
  readonly status?: { readonly conditions?: readonly Condition[] };
}

function isStalled({ type, status }: Condition): boolean {
  return type === 'Stalled' && status === 'True';
}

/** What the custom resources render to, by name; only a test can make so many different objects of one construct. */
const renderings = new Map<string, AnyObject>();

class Rendering extends Construct {
  constructor(scope: Construct, id: string, { metadata: { name } }: { metadata: { name: string } }) {
    super(scope, id);
    const { apiVersion, kind, metadata, ...content } = renderings.get(name)!;
    const labels = { ...metadata.labels };
    const object = new ApiObject(this, 'object', { apiVersion, kind, metadata: { labels, name } });
    // As it is: cdk8s would leave out what is null.
    for (const [field, value] of Object.entries(content))
      object.addJsonPatch(JsonPatch.add(`/${field}`, value));
  }
}

const anything = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } as const;
const kind = defineKind({
  crd: {
    ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' },
    metadata: { name: 'renderings.steady.example.com' },
    spec: {
      ...{ group: 'steady.example.com', scope: 'Namespaced' },
      names: { kind: 'Rendering', listKind: 'RenderingList', plural: 'renderings', singular: 'rendering' },
      versions: [
        {
          ...{ name: 'v1', served: true, storage: true, subresources: { status: {} } },
          schema: {
            openAPIV3Schema: { type: 'object', properties: { spec: anything, status: anything } },
          },
        },
      ],
    },
  } as never,
  construct: Rendering,
  children: [...new Map([...bases, ...normalised].map((one) => [one.kind, one])).values()].map(
    ({ apiVersion, kind: name }) => ({ apiVersion, kind: name }),
  ),
});

const user = 'operator-97';
const cluster = new Cluster(openSandbox(inject('sandbox')));
let namespace: string;

beforeAll(async () => {
  await installCrd(cluster, kind);
  namespace = await cluster.makeNamespace('renderings');
  await grant(cluster, { user, rules: rulesFor([kind]), namespaces: [namespace] });
});
afterAll(() => cluster.close());

/** Starts an operator that knows nothing, and waits until it has nothing to do. */
async function rested(): Promise<Operator> {
  const kubeconfig = await accountKubeconfig(cluster, user);
  const operator = await Operator.start({ kubeconfig, kinds: [kind], namespaces: [namespace] });
  await operator.quiet(1_000);
  return operator;
}

test('after a restart nothing is sent, whatever is empty, null or in another form in what is rendered', async () => {
  const [deployment, cronJob, ...others] = bases;
  const variantsOf = async (base: AnyObject, butBelow?: string): Promise<AnyObject[]> =>
    acceptedVariants(cluster, { namespace, base, ...(butBelow !== undefined && { butBelow }) });
  const [ofDeployment, ...ofOthers] = await Promise.all([
    variantsOf(deployment),
    variantsOf(cronJob, 'spec.jobTemplate.spec.template'),
    ...others.map((base) => variantsOf(base)),
  ]);
  // What a Deployment's pods may have, those of a CronJob may have too.
  const ofPods = ofDeployment.map(({ spec }) => withPods(cronJob, (spec as { template: Pods }).template));
  for (const object of [...bases, ...normalised, ...ofDeployment, ...ofPods, ...ofOthers.flat()])
    renderings.set(`steady-${renderings.size}`, object);
  expect(renderings.size).toBeGreaterThan(40);
  const { apiVersion, kind: type } = kind.type;
  await Promise.all(
    [...renderings.keys()].map((name) =>
      cluster.create(kind.type, { apiVersion, kind: type, metadata: { name, namespace }, spec: {} }),
    ),
  );
  (await rested()).kill();
  const crs = await cluster.list<LiveResource>(kind.type, namespace);
  const stalled = crs.filter(({ status }) => status?.conditions?.some(isStalled));
  expect(stalled.map(({ metadata, status }) => [renderings.get(metadata.name), status])).toEqual([]);

  const requests = await requestsFromNowOn(cluster, user);
  const operator = await rested();
  operator.kill();

  const sent = (await requests()).filter(({ verb }) => verb !== 'watch' && verb !== 'list');
  const told = sent.map(({ verb, objectRef: { resource = '', name = '' } = {} }) => {
    return `${verb} ${resource} ${name}: ${JSON.stringify(renderings.get(name))}`;
  });
  expect(told).toEqual([]);
});
