import type { V1Deployment, V1Service } from '@kubernetes/client-node';
import { beforeAll, describe, expect, test } from 'vitest';
import { ADOPT_BY_ANNOTATION } from '../../src/contract/names.js';
import type { AnyObject } from '../../src/contract/object.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import type { Wire } from '../../src/author/kubernetes-types.js';
import { deployments, eventually, services } from '../support/cluster.js';
import type { Place } from '../support/cluster.js';
import { summary, writes } from '../support/requests.js';
import type { Subject } from '../support/subject.js';
import { cluster, journey, operator } from './support/operator.js';

type Deployment = Wire<V1Deployment>;
type Service = Wire<V1Service>;

const image = 'example.com/web:1';
let apps: Subject;

beforeAll(async () => {
  apps = await journey(appService, 'app-service');
});

const deploymentOf = (name: string): Place => apps.childPlace(deployments, name);
const serviceOf = (name: string): Place => apps.childPlace(services, name);

describe('the status', () => {
  test('carries the counters and conditions of the Deployment, and Ready', async () => {
    await apps.create('counted', { size: 2, image });
    await apps.ready('counted');

    await eventually(async () => {
      const { status, metadata } = await apps.get('counted');
      const deployment = await cluster.get<Deployment>(deploymentOf('counted'));
      const { conditions = [], observedGeneration, ...counters } = deployment.status!;
      expect(observedGeneration).toBe(deployment.metadata!.generation);
      expect(status).toMatchObject(counters);
      expect(status).toMatchObject({
        replicas: 2,
        readyReplicas: 2,
        availableReplicas: 2,
        updatedReplicas: 2,
      });
      expect(status).toMatchObject({ unavailableReplicas: 0, observedGeneration: metadata.generation });
      const short = status!.conditions!.map(({ type, status, reason }) => [type, status, reason]);
      expect(short.slice(0, 3)).toEqual([
        ['Ready', 'True', 'Available'],
        ['Reconciling', 'False', 'Available'],
        ['Stalled', 'False', 'Available'],
      ]);
      expect(short.slice(3).sort()).toEqual(
        conditions.map(({ type, status, reason }) => [type, status, reason]).sort(),
      );
    });
  });

  test('says that a rollout is under way, and moves lastTransitionTime only when a status flips', async () => {
    await apps.create('rolling', { size: 1, image: 'sandbox.invalid/never-ready' });
    const before = await apps.condition('rolling', {
      type: 'Ready',
      status: 'Unknown',
      reason: 'RollingOut',
    });
    await eventually(async () => {
      expect((await apps.get('rolling')).status).toMatchObject({ replicas: 1, unavailableReplicas: 1 });
      // A later second, so that a time that moves would differ.
      expect(Date.now()).toBeGreaterThan(Date.parse(before.lastTransitionTime) + 1_000);
    });

    await apps.edit('rolling', { size: 2, image: 'sandbox.invalid/never-ready' });
    await eventually(async () => {
      expect((await apps.get('rolling')).status).toMatchObject({ replicas: 2, unavailableReplicas: 2 });
    });

    const after = await apps.condition('rolling', { type: 'Ready', status: 'Unknown' });
    expect(after.lastTransitionTime).toBe(before.lastTransitionTime);
    await apps.edit('rolling', { size: 1, image });
    await apps.ready('rolling');
  });
});

describe('what others have a say in', () => {
  test('a node port that the cluster has chosen stays whatever else is edited', async () => {
    await apps.create('exposed', { size: 0, image, ports: [{ name: 'http', port: 80 }] });
    await apps.asRendered('exposed');
    const nodePort = async (): Promise<number | undefined> => {
      const { spec } = await cluster.get<Service>(serviceOf('exposed'));
      return spec!.ports!.find(({ name }) => name === 'http')!.nodePort;
    };
    const chosen = await nodePort();

    const http = { name: 'http', port: 80 };
    for (const spec of [
      { size: 0, image: 'example.com/web:2', ports: [http] },
      { size: 0, image, ports: [{ ...http, targetPort: 8080, appProtocol: 'http' }] },
      { size: 0, image, ports: [{ name: 'https', port: 443 }, http] },
      { size: 0, image, ports: [http] },
    ]) {
      await apps.edit('exposed', spec);
      await apps.asRendered('exposed');
      expect(await nodePort()).toBe(chosen);
    }
    await cluster.merge(serviceOf('exposed'), { spec: { type: 'ClusterIP' } });
    await apps.asRendered('exposed');
  });

  test('a node port that one custom resource gives up is taken by the one that waits for it', async () => {
    const wanted = { size: 0, image, ports: [{ port: 80, nodePort: 30_020 }] };
    await apps.create('holder', wanted);
    await apps.asRendered('holder');
    await apps.create('waiting', wanted);
    await apps.condition('waiting', { type: 'Ready', status: 'False' });

    await apps.edit('holder', { ...wanted, ports: [{ port: 80, nodePort: 30_021 }] });

    await apps.ready('waiting');
    await apps.asRendered('waiting');
  });

  test('the order of the variables follows the custom resource', async () => {
    const [first, second] = [
      { name: 'FIRST', value: '1' },
      { name: 'SECOND', value: '$(FIRST)' },
    ];
    await apps.create('ordered', { size: 0, image, envs: [second, first] });
    await apps.asRendered('ordered');

    await apps.edit('ordered', { size: 0, image, envs: [first, second] });

    await apps.asRendered('ordered');
  });
});

describe('an object of the same name that belongs to another writer', () => {
  const foreign = {
    Deployment: (name: string): AnyObject => ({
      ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name, namespace: apps.namespace } },
      spec: {
        replicas: 0,
        selector: { matchLabels: { app: 'foreign' } },
        template: {
          metadata: { labels: { app: 'foreign' } },
          spec: { containers: [{ name: 'foreign', image: 'example.com/foreign' }] },
        },
      },
    }),
    Service: (name: string): AnyObject => ({
      ...{ apiVersion: 'v1', kind: 'Service', metadata: { name, namespace: apps.namespace } },
      spec: { selector: { app: 'foreign' }, ports: [{ port: 80 }] },
    }),
  };
  const spec = { size: 0, image, ports: [{ port: 80 }] };

  test.for([
    { kind: 'Deployment' as const, type: deployments },
    { kind: 'Service' as const, type: services },
  ])('is refused and left alone, until it goes away: $kind', async ({ kind, type }) => {
    const name = `taken-${kind.toLowerCase()}`;
    const place = apps.childPlace(type, name);
    await cluster.create(type, foreign[kind](name));
    const { metadata: before } = await eventually(async () => {
      const object = await cluster.get(place);
      // Its own controller has finished with it.
      if (kind === 'Deployment') expect(object.status).toMatchObject({ observedGeneration: 1 });
      return object;
    });

    await apps.create(name, spec);

    await apps.condition(name, { type: 'Stalled', status: 'True', reason: 'OwnershipConflict' });
    const ready = await apps.condition(name, { type: 'Ready', status: 'False', reason: 'OwnershipConflict' });
    expect(ready.message).toContain(`${kind} ${apps.namespace}/${name}`);
    const { metadata: after } = await cluster.get(place);
    expect(after.labels).toEqual(before.labels);
    expect(after.ownerReferences).toBeUndefined();
    expect(after.generation).toEqual(before.generation);
    const { managedFields } = after as { managedFields?: { manager: string }[] };
    expect(managedFields!.map(({ manager }) => manager)).not.toContain('appservice-controller');

    await cluster.delete(place);
    await apps.ready(name);
    await apps.asRendered(name);
  });

  test('a Service can be handed over by annotation', async () => {
    await cluster.create(services, foreign.Service('adopted'));
    const { metadata: before } = await cluster.get(serviceOf('adopted'));
    await apps.create('adopted', spec);
    await apps.condition('adopted', { type: 'Stalled', status: 'True', reason: 'OwnershipConflict' });

    await cluster.merge(serviceOf('adopted'), {
      metadata: { annotations: { [ADOPT_BY_ANNOTATION]: 'AppService/adopted' } },
    });

    await apps.ready('adopted');
    await eventually(async () => {
      const { metadata, spec } = await cluster.get<Service>(serviceOf('adopted'));
      expect(metadata!.uid).toBe(before.uid);
      expect(metadata!.ownerReferences).toMatchObject([
        { kind: 'AppService', name: 'adopted', controller: true },
      ]);
      expect(spec).toMatchObject({ type: 'NodePort', selector: { 'kosmos.io/appservice': 'adopted' } });
    });
  });

  test('a Service that is handed to another AppService is refused', async () => {
    const theirs = foreign.Service('promised');
    await cluster.create(services, {
      ...theirs,
      metadata: { ...theirs.metadata, annotations: { [ADOPT_BY_ANNOTATION]: 'AppService/somebody' } },
    });

    await apps.create('promised', spec);

    await apps.condition('promised', { type: 'Stalled', status: 'True', reason: 'OwnershipConflict' });
  });
});

test('a pod template restarted by kubectl is not rolled back', async () => {
  await apps.create('restarted', { size: 1, image });
  await apps.ready('restarted');
  const requests = await operator.requestsFromNowOn(apps.namespace);

  await cluster.sandbox.kubectl(['-n', apps.namespace, 'rollout', 'restart', 'deployment/restarted']);
  await cluster.sandbox.kubectl([
    ...['-n', apps.namespace, 'rollout', 'status', 'deployment/restarted', '--timeout=60s'],
  ]);

  await apps.ready('restarted');
  const written = writes(await requests()).filter(({ objectRef }) => objectRef?.resource === 'deployments');
  expect(written.map(summary)).toEqual([]);
  const { spec } = await cluster.get<Deployment>(deploymentOf('restarted'));
  expect(spec!.template.metadata!.annotations).toHaveProperty('kubectl.kubernetes.io/restartedAt');
});

test('a service account that is named and then no longer is given up', async () => {
  const accountOf = async (): Promise<unknown> => {
    const { spec } = await cluster.get<AnyObject & { spec: { template: { spec: object } } }>(
      apps.childPlace(deployments, 'account'),
    );
    return spec.template.spec;
  };
  await apps.create('account', { size: 0, image, serviceAccountName: 'shop' });
  await apps.ready('account');
  expect(await accountOf()).toMatchObject({ serviceAccountName: 'shop' });

  await apps.edit('account', { size: 0, image });
  await apps.asRendered('account');

  expect(await accountOf()).not.toHaveProperty('serviceAccountName');
});

test('a custom resource that is edited many times in a row ends as it says last', async () => {
  await apps.create('hot', { size: 0, image });
  for (let round = 1; round <= 50; round++)
    await apps.edit('hot', { size: 0, image: `example.com/web:${round}`, ports: [{ port: round }] });

  await apps.asRendered('hot');
  expect((await cluster.get<Service>(serviceOf('hot'))).spec!.ports![0]!.port).toBe(50);
});
