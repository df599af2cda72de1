import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { stringify } from 'yaml';
import type { Condition } from '../../src/contract/conditions.js';
import type { Kind } from '../../src/contract/kind.js';
import { appServiceOfExample } from '../../src/kinds/app-service/example-group.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import { streamIngress } from '../../src/kinds/stream-ingress/kind.js';
import { eventually, installCrd } from '../support/cluster.js';
import type { Place } from '../support/cluster.js';
import { customizationOf, healthOf } from '../support/health.js';
import { startController } from '../support/operator.js';
import { settled } from '../support/requests.js';
import { IngressNginx, makeUpstream } from '../support/streams.js';
import type { LiveResource } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';

const user = 'operator-74';
const cluster = openCluster();
const kinds = [appService, appServiceOfExample, streamIngress, jobWatcher];
let namespace: string;
let proxies: string;

/** A custom resource on its way to a state. */
interface Case {
  readonly kind: Kind;
  /** Also of the file in which it is recorded, where it begins with what Argo CD makes of it. */
  readonly name: string;
  readonly spec: object;
  /** The state that it comes to once the controller runs. @default - it is there before the controller */
  readonly until?: Partial<Condition>;
  /** The spec that it has once the controller has gone again. @default - it stays as it is */
  readonly edited?: object;
}

const image = 'example.com/web:1';
const web = { size: 1, image, ports: [{ port: 80 }], service: { type: 'ClusterIP' } };
const notPulled = { ...web, image: 'sandbox.invalid/no-image:1' };
const READY = { type: 'Ready', status: 'True' } as const;

const cases: readonly Case[] = [
  ...[appService, appServiceOfExample].flatMap((kind): Case[] => {
    const prefix = kind === appService ? '' : 'example-';
    const named = (name: string): Pick<Case, 'kind' | 'name'> => ({
      kind,
      name: name.replace('-', `-${prefix}`),
    });
    return [
      { ...named('progressing-new'), spec: web },
      { ...named('healthy-available'), spec: web, until: READY },
      { ...named('progressing-edited'), spec: web, until: READY, edited: { ...web, size: 2 } },
      {
        ...named('progressing-rolling-out'),
        spec: { ...web, image: 'sandbox.invalid/never-ready' },
        until: { type: 'Reconciling', status: 'True', reason: 'RollingOut' },
      },
      {
        ...named('progressing-failing'),
        spec: notPulled,
        until: { type: 'Reconciling', status: 'True', reason: 'ImagePullBackOff' },
      },
      {
        ...named('degraded-deadline'),
        spec: { ...web, image: 'sandbox.invalid/never-ready', progressDeadlineSeconds: 1 },
        until: { type: 'Stalled', status: 'True', reason: 'ProgressDeadlineExceeded' },
      },
    ];
  }),
  ...((): Case[] => {
    const kind = streamIngress;
    const upstream = { service: 'db', port: 5432 };
    return [
      { kind, name: 'progressing-new', spec: { listen: 9001, upstream } },
      { kind, name: 'healthy-programmed', spec: { listen: 9002, upstream }, until: READY },
      {
        ...{ kind, name: 'progressing-edited', spec: { listen: 9003, upstream }, until: READY },
        edited: { listen: 9003, upstream: { ...upstream, service: 'other' } },
      },
      {
        ...{
          kind,
          name: 'progressing-no-service',
          spec: { listen: 9004, upstream: { service: 'none', port: 1 } },
        },
        until: { type: 'Reconciling', status: 'True', reason: 'ServiceNotFound' },
      },
      {
        ...{ kind, name: 'degraded-reserved', spec: { listen: 443, upstream } },
        until: { type: 'Stalled', status: 'True', reason: 'PortReserved' },
      },
    ];
  })(),
  ...((): Case[] => {
    const kind = jobWatcher;
    const spec = (name: string): object => ({ jobNamePatterns: [`^${name}-`], completedTTL: '1h' });
    return [
      { kind, name: 'progressing-new', spec: spec('new') },
      { kind, name: 'healthy-watching', spec: spec('watching'), until: READY },
      {
        ...{ kind, name: 'healthy-suspended', spec: { ...spec('suspended'), suspend: true } },
        until: { ...READY, reason: 'Suspended' },
      },
      {
        ...{ kind, name: 'progressing-edited', spec: spec('edited'), until: READY },
        edited: { ...spec('edited'), completedTTL: '2h' },
      },
      {
        ...{ kind, name: 'degraded-elsewhere' },
        spec: { ...spec('elsewhere'), namespacePatterns: ['^elsewhere$'] },
        until: { type: 'Stalled', status: 'True', reason: 'NamespaceNotPermitted' },
      },
    ];
  })(),
];

beforeAll(async () => {
  await healthOf([]);
  await installCrd(cluster, ...kinds);
  namespace = await cluster.makeNamespace('gitops-health');
  proxies = await cluster.makeNamespace('gitops-proxies');
  await new IngressNginx(cluster, user, undefined, proxies).makeService();
  await makeUpstream(cluster, namespace);
});

const place = ({ kind, name }: Case): Place => ({ type: kind.type, namespace, name });

async function create({ kind, name, spec }: Case): Promise<void> {
  const { apiVersion, kind: of } = kind.type;
  await cluster.create(kind.type, { apiVersion, kind: of, metadata: { name, namespace }, spec });
}

/** Waits until it is where it is meant to come to. */
async function reached(each: Case): Promise<LiveResource> {
  return eventually(async () => {
    const found = await cluster.get<LiveResource>(place(each));
    expect(found.status?.conditions, each.name).toContainEqual(
      expect.objectContaining({ ...each.until, observedGeneration: found.metadata.generation }),
    );
    return found;
  });
}

test('Argo CD and kstatus see every state of every kind as it is', async () => {
  // GIVEN
  const live = new Map<Case, LiveResource>();
  for (const each of cases.filter(({ until }) => !until)) {
    await create(each);
    live.set(each, await cluster.get<LiveResource>(place(each)));
  }
  const flags = { '--ingress-namespace': proxies };
  const namespaces = [namespace];
  const args = Object.entries(flags).flat();
  const controller = await startController({ cluster, user, kinds, namespaces, args });
  try {
    for (const each of cases) if (each.until) await create(each);
    for (const each of cases) if (each.until) await reached(each);
    // What is recorded is the end of it, the same each time.
    await settled(cluster, user);
    for (const each of cases) if (each.until) live.set(each, await reached(each));
  } finally {
    await controller.kill();
  }
  for (const each of cases) {
    if (!each.edited) continue;
    await cluster.replaceSpec(place(each), each.edited);
    live.set(each, await cluster.get<LiveResource>(place(each)));
  }

  // WHEN
  const objects = cases.map((each) => live.get(each)!);
  const health = await healthOf(objects);

  // THEN
  const seen = cases.map(({ kind, name }, index) => ({
    of: `${kind.type.apiVersion} ${name}`,
    argo: health[index]!.argo.status,
    kstatus: health[index]!.kstatus.status,
  }));
  expect(seen).toEqual(
    cases.map(({ kind, name }) => ({
      of: `${kind.type.apiVersion} ${name}`,
      ...VERDICTS[name.split('-')[0]!],
    })),
  );
  // What was seen is what the scripts are tested with elsewhere.
  for (const [index, each] of cases.entries()) {
    const file = join(customizationOf(each.kind.type), 'testdata', `${each.name.replaceAll('-', '_')}.yaml`);
    const text = asRecorded(objects[index]!, { [namespace]: 'shop', [proxies]: 'ingress-nginx' });
    await expect(text).toMatchFileSnapshot(file);
  }
});

/** By the first word of a name. */
const VERDICTS: Readonly<Record<string, object>> = {
  progressing: { argo: 'Progressing', kstatus: 'InProgress' },
  healthy: { argo: 'Healthy', kstatus: 'Current' },
  degraded: { argo: 'Degraded', kstatus: 'Failed' },
};

const TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g;

/**
 * Returns a live object as YAML, without what is another one each time: times, identities, who manages its fields.
 * @param names what namespaces are called instead
 */
function asRecorded({ metadata, ...object }: LiveResource, names: Readonly<Record<string, string>>): string {
  const { managedFields: _, ...kept } = metadata as typeof metadata & { readonly managedFields?: unknown };
  const fixed = { uid: '5d1c7f0e-0000-4000-8000-000000000001', resourceVersion: '1' };
  const text = stringify(
    { ...object, metadata: { ...kept, ...fixed } },
    { lineWidth: 0, sortMapEntries: true },
  );
  return Object.entries(names)
    .reduce((renamed, [from, to]) => renamed.replaceAll(from, to), text)
    .replaceAll(TIME, '2026-01-01T00:00:00Z');
}
