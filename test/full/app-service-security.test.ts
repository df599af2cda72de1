import { readdirSync, readFileSync } from 'node:fs';
import type { V1Pod } from '@kubernetes/client-node';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { parse } from 'yaml';
import { openSandbox } from '../../sandbox/client.js';
import type { AnyObject } from '../../src/contract/object.js';
import { resourceType } from '../../src/contract/resource.js';
import type { AppServiceProps } from '../../src/kinds/app-service/construct.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import type { Wire } from '../../src/kinds/common.js';
import type { AppServiceSpec } from '../../src/kinds/app-service/spec.js';
import { brokenRules } from '../kinds/app-service/broken-rules.js';
import { render } from '../kinds/app-service/render.js';
import { Cluster, collection } from './support/cluster.js';
import { startController } from './support/controller.js';
import type { RunningController } from './support/controller.js';
import { installCrd } from './support/crds.js';
import { eventually } from './support/eventually.js';
import { Subject } from './support/subject.js';

type Pod = AnyObject & Wire<Pick<V1Pod, 'spec' | 'status'>>;

const user = 'operator-18';
const image = 'example.com/web:1';
const namespaces = resourceType({ apiVersion: 'v1', kind: 'Namespace', namespaced: false });
const pods = resourceType({ apiVersion: 'v1', kind: 'Pod' });
const serviceAccounts = resourceType({ apiVersion: 'v1', kind: 'ServiceAccount' });
const cluster = new Cluster(openSandbox(inject('sandbox')));
let restricted: Subject;
let baseline: Subject;
let controller: RunningController;

beforeAll(async () => {
  await installCrd(cluster, appService);
  restricted = await enforcing('restricted');
  baseline = await enforcing('baseline');
  controller = await startController({
    ...{ cluster, user, kinds: [appService] },
    namespaces: [restricted.namespace, baseline.namespace],
  });
});
afterAll(async () => {
  await controller.kill();
  await cluster.close();
});

/** A namespace that enforces one of the Pod Security Standards. */
async function enforcing(level: string): Promise<Subject> {
  const namespace = await cluster.makeNamespace(level);
  const labels = { 'pod-security.kubernetes.io/enforce': level };
  await cluster.merge({ type: namespaces, name: namespace }, { metadata: { labels } });
  await cluster.create(serviceAccounts, {
    ...{ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'shop', namespace } },
  });
  return new Subject(cluster, appService, namespace);
}

async function podsOf({ namespace }: Subject, name: string): Promise<Pod[]> {
  return cluster.list<Pod>(pods, namespace, `kosmos.io/appservice=${name}`);
}

describe('where the namespace enforces restricted', () => {
  test('pods with securityProfile Restricted are made, admitted and run', async () => {
    const all = {
      ...{ size: 2, image, securityProfile: 'Restricted', ports: [{ port: 80, targetPort: 8080 }] },
      probes: { readiness: { tcpSocket: { port: 8080 } }, liveness: { httpGet: { port: 8080 } } },
      files: [
        { path: '/cache', emptyDir: {} },
        { path: '/etc/web', configMap: { name: 'web', optional: true } },
        { path: '/var/run/vault', token: { audience: 'vault' } },
      ],
      preStop: { sleep: { seconds: 1 } },
      topologySpread: {},
    };
    await restricted.create('full', all);
    await restricted.ready('full');
    await restricted.asRendered('full');

    const made = await podsOf(restricted, 'full');
    expect(made.map(({ status }) => status?.phase)).toEqual(['Running', 'Running']);
    for (const { spec } of made) {
      expect(spec).toMatchObject({
        securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
        ...{ automountServiceAccountToken: false, enableServiceLinks: false },
      });
      expect(spec?.containers[0]).toMatchObject({
        securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
      });
    }
  });

  test.each([{ securityProfile: undefined }, { securityProfile: 'Baseline' }])(
    'with securityProfile $securityProfile no pod is made, and to add the line of the message heals that',
    async ({ securityProfile }) => {
      const name = `refused-${securityProfile?.toLowerCase() ?? 'unset'}`;
      await restricted.create(name, { size: 2, image, ...(securityProfile && { securityProfile }) });
      const { message } = await restricted.condition(name, {
        ...{ type: 'Stalled', status: 'True', reason: 'PodSecurityViolation' },
      });
      await restricted.condition(name, { type: 'Ready', status: 'False', reason: 'PodSecurityViolation' });
      expect(await podsOf(restricted, name)).toEqual([]);

      const [, line] = /add "(.*)" to the spec/.exec(message) ?? [];
      await cluster.merge(restricted.place(name), { spec: parse(line!) as object });

      await restricted.ready(name);
      const made = await podsOf(restricted, name);
      expect(made.map(({ status }) => status?.phase)).toEqual(['Running', 'Running']);
    },
  );
});

test('where the namespace enforces baseline, pods run without a profile and with each', async () => {
  for (const [name, profile] of Object.entries({
    unset: {},
    baseline: { securityProfile: 'Baseline' },
    restricted: { securityProfile: 'Restricted' },
  })) {
    await baseline.create(name, { size: 1, image, ...profile });
    await baseline.ready(name);
  }
});

test('a namespace that comes to enforce restricted is told of at the next rollout, while the old pods run on', async () => {
  const later = new Subject(cluster, appService, baseline.namespace);
  await later.create('later', { size: 1, image });
  await later.ready('later');
  const enforce = async (level: string): Promise<void> => {
    const labels = { 'pod-security.kubernetes.io/enforce': level };
    await cluster.merge({ type: namespaces, name: later.namespace }, { metadata: { labels } });
  };
  await enforce('restricted');
  try {
    await later.edit('later', { size: 1, image: 'example.com/web:2' });
    await later.condition('later', { type: 'Stalled', status: 'True', reason: 'PodSecurityViolation' });
    expect((await podsOf(later, 'later')).map(({ spec }) => spec?.containers[0]?.image)).toEqual([image]);

    await later.edit('later', { size: 1, image: 'example.com/web:2', securityProfile: 'Restricted' });
    await later.ready('later');
  } finally {
    await enforce('baseline');
  }
});

describe('the API server admits the pods of every spec,', () => {
  const folder = new URL('../../examples/appservice/', import.meta.url);
  const examples = readdirSync(folder).map((file) => {
    // As kubectl reads it: 0555 is octal.
    const { spec } = parse(readFileSync(new URL(file, folder), 'utf8'), {
      version: '1.1',
    }) as AppServiceProps;
    return { what: file, spec };
  });
  const base = { size: 1, image };
  const ruled = brokenRules.map(({ valid }, index) => ({
    what: `${index}: ${JSON.stringify(valid).slice(0, 80)}`,
    spec: { ...base, ...valid },
  }));

  /** What Pod Security admission says to a pod of the spec. */
  async function answer({ namespace }: Subject, spec: AppServiceSpec): Promise<[number, unknown]> {
    const { template } = render(spec).deployment.spec!;
    const metadata = { generateName: 'web-', namespace, labels: template.metadata?.labels };
    // No account has to be there for the judgement.
    const { serviceAccount, serviceAccountName, ...podSpec } = template.spec!;
    const body = { apiVersion: 'v1', kind: 'Pod', metadata, spec: podSpec };
    const query = { dryRun: 'All' };
    const { status, body: said } = await cluster.send('POST', collection(pods, namespace), { body, query });
    return [status, said.message];
  }

  test.each([...examples, ...ruled])(
    'Restricted where it is enforced, none or Baseline at baseline: $what',
    async ({ spec }) => {
      const { securityProfile, ...plain } = spec as AppServiceSpec;
      await eventually(async () => {
        const account = { type: serviceAccounts, namespace: restricted.namespace, name: 'default' };
        expect(await cluster.find(account)).toBeDefined();
      });
      expect(await answer(restricted, { ...plain, securityProfile: 'Restricted' })).toEqual([201, undefined]);
      expect(await answer(baseline, { ...plain, securityProfile: 'Baseline' })).toEqual([201, undefined]);
      expect(await answer(baseline, plain)).toEqual([201, undefined]);
      expect((await answer(restricted, plain))[0]).toBe(403);
    },
  );
});
