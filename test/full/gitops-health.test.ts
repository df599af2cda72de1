import { beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import type { Condition } from '../../src/contract/conditions.js';
import type { Kind } from '../../src/contract/kind.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import { streamIngress } from '../../src/kinds/stream-ingress/kind.js';
import { configMap, loadBundle } from '../support/bundle.js';
import { eventually, installCrd } from '../support/cluster.js';
import type { Place } from '../support/cluster.js';
import { done, goTool, reconstruct } from '../support/commands.js';
import { startController } from '../support/operator.js';
import { IngressNginx, makeUpstream } from '../support/streams.js';
import type { LiveResource } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';

const user = 'operator-74';
const cluster = openCluster();
const { kind: bundle, config } = await loadBundle();
const kinds: readonly Kind[] = [appService, streamIngress, jobWatcher, bundle];
let namespace: string;
let proxies: string;

/** A custom resource on its way to a state. */
interface Case {
  readonly kind: Kind;
  /** Begins with its health for Argo CD. */
  readonly name: string;
  readonly spec: object;
  /** The state that it comes to once the controller runs. @default - it is there before the controller */
  readonly until?: Partial<Condition>;
  /** The spec that it has once the controller has gone again. @default - it stays as it is */
  readonly edited?: object;
}

const image = 'example.com/web:1';
const web = { size: 1, image, ports: [{ port: 80 }], service: { type: 'ClusterIP' } };
const READY = { type: 'Ready', status: 'True' } as const;

const cases: readonly Case[] = [
  ...((): Case[] => {
    const kind = appService;
    const neverReady = { ...web, image: 'sandbox.invalid/never-ready' };
    return [
      { kind, name: 'progressing-new', spec: web },
      { kind, name: 'healthy-available', spec: web, until: READY },
      { kind, name: 'progressing-edited', spec: web, until: READY, edited: { ...web, size: 2 } },
      {
        ...{ kind, name: 'progressing-rolling-out', spec: neverReady },
        until: { type: 'Reconciling', status: 'True', reason: 'RollingOut' },
      },
      {
        ...{ kind, name: 'progressing-failing', spec: { ...web, image: 'sandbox.invalid/no-image:1' } },
        until: { type: 'Reconciling', status: 'True', reason: 'ImagePullBackOff' },
      },
      {
        ...{ kind, name: 'degraded-deadline', spec: { ...neverReady, progressDeadlineSeconds: 1 } },
        until: { type: 'Stalled', status: 'True', reason: 'ProgressDeadlineExceeded' },
      },
    ];
  })(),
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
  ...((): Case[] => {
    const kind = bundle;
    const named = (name: string): object => ({ objects: [configMap(name, {})] });
    return [
      { kind, name: 'progressing-new', spec: named('a') },
      { kind, name: 'healthy-applied', spec: named('b'), until: READY },
      { kind, name: 'progressing-edited', spec: named('c'), until: READY, edited: named('d') },
      {
        ...{ kind, name: 'degraded-refused', spec: named('not_a_name') },
        until: { type: 'Stalled', status: 'True' },
      },
    ];
  })(),
];

beforeAll(async () => {
  await goTool('health');
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
  const args = ['--ingress-namespace', proxies];
  const controller = await startController({ cluster, user, kinds, config, namespaces: [namespace], args });
  try {
    for (const each of cases) if (each.until) await create(each);
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
  const health = await healthOf(cases.map((each) => live.get(each)!));

  // THEN
  const seen = cases.map(({ kind, name }, index) => ({
    ...{ of: `${kind.name} ${name}`, argo: health[index]!.argo, kstatus: health[index]!.kstatus.status },
  }));
  expect(seen).toEqual(
    cases.map((each) => {
      const [status, kstatus, type] = VERDICTS[each.name.split('-')[0]!]!;
      const isObserved = each.until !== undefined && each.edited === undefined;
      const { conditions } = live.get(each)!.status ?? {};
      const message = isObserved
        ? conditions?.find((condition) => condition.type === type)?.message
        : 'Waiting for the controller';
      return { of: `${each.kind.name} ${each.name}`, argo: { status, message }, kstatus };
    }),
  );
});

/** Health for Argo CD and by kstatus, and the condition that gives the reason, by the first word of a name. */
const VERDICTS: Readonly<Record<string, readonly [argo: string, kstatus: string, type: string]>> = {
  progressing: ['Progressing', 'InProgress', 'Ready'],
  healthy: ['Healthy', 'Current', 'Ready'],
  degraded: ['Degraded', 'Failed', 'Stalled'],
};

interface Health {
  readonly argo: { readonly status: string; readonly message: string };
  readonly kstatus: { readonly status: string };
}

/** Asks the interpreter and the library that the tools use, with the scripts that `install` prints. */
async function healthOf(objects: readonly LiveResource[]): Promise<Health[]> {
  const { data } = parse(await reconstruct('install', '--argo-health', '--config', config)) as {
    readonly data: Readonly<Record<string, string>>;
  };
  const questions = cases.map(({ kind: { crd } }, index) => ({
    object: objects[index],
    script: data[`resource.customizations.health.${crd.spec.group}_${crd.spec.names.kind}`],
  }));
  return JSON.parse(await done(await goTool('health'), [], { stdin: JSON.stringify(questions) })) as Health[];
}
