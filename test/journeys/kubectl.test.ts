import type { V1Deployment } from '@kubernetes/client-node';
import { beforeAll, describe, expect, test } from 'vitest';
import type { AnyObject } from '../../src/contract/object.js';
import { resourceType } from '../../src/contract/resource.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import type { Wire } from '../../src/author/kubernetes-types.js';
import { collection, deployments, eventually } from '../support/cluster.js';
import type { Subject } from '../support/subject.js';
import { cluster, journey, logFromNowOn, operator } from './support/operator.js';

type Deployment = AnyObject & Wire<Pick<V1Deployment, 'spec' | 'status'>>;

const image = 'example.com/web:1';
const autoscalers = resourceType({ apiVersion: 'autoscaling/v2', kind: 'HorizontalPodAutoscaler' });
let apps: Subject;

beforeAll(async () => {
  apps = await journey(appService, 'kubectl');
});

const kubectl: typeof cluster.sandbox.kubectl = (args, options) =>
  cluster.sandbox.kubectl(['--namespace', apps.namespace, ...args], options);

interface Table {
  readonly columnDefinitions: readonly { readonly name: string; readonly priority: number }[];
  readonly rows: readonly { readonly cells: readonly unknown[] }[];
}

/** What `kubectl get` is given to print, by column. */
async function cells(name: string): Promise<Record<string, unknown>> {
  const path = `${collection(appService.type, apps.namespace)}/${name}`;
  const { body } = await cluster.send('GET', path, {
    accept: 'application/json;as=Table;v=v1;g=meta.k8s.io',
  });
  const { columnDefinitions, rows } = body as unknown as Table;
  const [row] = rows;
  return Object.fromEntries(columnDefinitions.map(({ name }, index) => [name, row!.cells[index]]));
}

async function waitsForReady(name: string, timeout: string): Promise<boolean> {
  const args = ['wait', '--for=condition=Ready', `appsvc/${name}`, `--timeout=${timeout}`];
  const { code, stderr } = await kubectl(args, { allowFailure: true });
  if (code !== 0) expect(stderr).toContain('timed out waiting for the condition');
  return code === 0;
}

describe('kubectl get', () => {
  const columns = [
    'Name',
    'Ready',
    'Reason',
    'Desired',
    'Available',
    'Ports',
    'Age',
    'Image',
    'Update',
    'Message',
  ];

  test('shows how an AppService fares, and its ports as those of a Service', async () => {
    const ports = [
      { name: 'http', port: 80, targetPort: 8080 },
      { name: 'dns', port: 53, protocol: 'UDP' },
      { name: 'dns-tcp', port: 53 },
    ];
    await apps.create('shown', { size: 2, image, ports });
    await apps.ready('shown');

    const row = await cells('shown');
    expect(Object.keys(row)).toEqual(columns);
    expect(row).toMatchObject({
      ...{ Name: 'shown', Ready: 'True', Reason: 'Available', Desired: 2, Available: 2 },
      ...{
        Ports: expect.stringMatching(/^80:\d{5}\/TCP,53:\d{5}\/UDP,53:\d{5}\/TCP$/) as string,
        Image: image,
      },
      Message: '2 of 2 replicas are available',
    });
    const [head, line] = (await kubectl(['get', 'appsvc', 'shown'])).stdout.split('\n');
    expect(head).toMatch(/^NAME +READY +REASON +DESIRED +AVAILABLE +PORTS +AGE$/);
    expect(line).toMatch(/^shown +True +Available +2 +2 +\S+ +\d+s$/);
    const [wideHead, wideLine] = (await kubectl(['get', 'appsvc', 'shown', '-o', 'wide'])).stdout.split('\n');
    expect(wideHead).toMatch(/ PORTS +AGE +IMAGE +UPDATE +MESSAGE$/);
    expect(wideLine).toMatch(/ example\.com\/web:1 +(?:<none> +)?2 of 2 replicas are available$/);
    const asService = (await kubectl(['get', 'service', 'shown', '--no-headers'])).stdout.split(/ +/)[4];
    expect(row.Ports).toBe(asService);
  });

  test('shows what is wrong, ports without node ports, and none', async () => {
    await apps.create('inside', {
      size: 1,
      image: 'sandbox.invalid/no-image:1',
      ports: [{ port: 80 }],
      service: { type: 'ClusterIP' },
    });
    await apps.create('closed', { size: 0, image });
    await apps.condition('inside', { type: 'Ready', status: 'False', reason: 'ImagePullBackOff' });
    await apps.ready('closed');

    const inside = { Ready: 'False', Reason: 'ImagePullBackOff', Desired: 1, Available: 0, Ports: '80/TCP' };
    expect(await cells('inside')).toMatchObject(inside);
    expect((await cells('inside')).Message).toContain("can't be pulled");
    expect(await cells('closed')).toMatchObject({ Ready: 'True', Reason: 'ScaledToZero', Ports: null });
  });
});

describe('kubectl scale', () => {
  test('sets the size, and the Deployment follows, also to 0 and back', async () => {
    await apps.create('scaled', { size: 1, image });
    await apps.ready('scaled');

    for (const size of [4, 0, 2]) {
      await kubectl(['scale', 'appsvc/scaled', `--replicas=${size}`]);
      expect(await waitsForReady('scaled', '60s')).toBe(true);
      const deployment = await cluster.get<Deployment>(apps.childPlace(deployments, 'scaled'));
      expect([deployment.spec?.replicas, deployment.status?.availableReplicas ?? 0]).toEqual([size, size]);
      expect(await cells('scaled')).toMatchObject({ Desired: size, Available: size });
    }
    const scale = `${collection(appService.type, apps.namespace)}/scaled/scale`;
    expect((await cluster.send('GET', scale)).body).toMatchObject({
      spec: { replicas: 2 },
      status: { replicas: 2, selector: 'kosmos.io/appservice=scaled' },
    });
  });

  test('leaves the replicas to the autoscaler of an AppService that has one', async () => {
    const spec = { size: 2, image, resources: { requests: { cpu: '100m' } } };
    await apps.create('yielded', { ...spec, autoscaling: { maxReplicas: 9, cpu: 50 } });
    await apps.ready('yielded');

    await kubectl(['scale', 'appsvc/yielded', '--replicas=5']);
    expect(await waitsForReady('yielded', '60s')).toBe(true);

    const { spec: live } = await cluster.get<Deployment>(apps.childPlace(deployments, 'yielded'));
    expect(live?.replicas).toBe(2);
    expect((await apps.get('yielded')).spec).toMatchObject({ size: 5 });
  });

  test('is what an autoscaler of the AppService itself does', async () => {
    await apps.create('target', { size: 1, image });
    await apps.ready('target');
    const { apiVersion, kind } = appService.type;

    await cluster.create(autoscalers, {
      apiVersion: autoscalers.apiVersion,
      kind: autoscalers.kind,
      metadata: { name: 'somebodys', namespace: apps.namespace },
      spec: { scaleTargetRef: { apiVersion, kind, name: 'target' }, minReplicas: 3, maxReplicas: 5 },
    });

    await eventually(async () => {
      expect((await apps.get('target')).spec).toMatchObject({ size: 3 });
    });
    expect(await waitsForReady('target', '60s')).toBe(true);
    expect((await apps.get('target')).status).toMatchObject({ replicas: 3, availableReplicas: 3 });
    await cluster.delete({ type: autoscalers, namespace: apps.namespace, name: 'somebodys' });
  });
});

describe('kubectl wait --for=condition=Ready', () => {
  test('waits for the state after an edit, and not for that before', async () => {
    await apps.create('awaited', { size: 1, image });
    expect(await waitsForReady('awaited', '60s')).toBe(true);
    const log = logFromNowOn();
    process.kill(operator.pid, 'SIGSTOP');
    try {
      await kubectl(['scale', 'appsvc/awaited', '--replicas=2']);
      expect(await waitsForReady('awaited', '1s')).toBe(false);
    } finally {
      process.kill(operator.pid, 'SIGCONT');
    }

    expect(await waitsForReady('awaited', '60s')).toBe(true);

    await log.logged(({ msg, name }) => msg === 'reconciled' && name === 'awaited');
    expect((await apps.get('awaited')).status).toMatchObject({ availableReplicas: 2 });
  });
});
