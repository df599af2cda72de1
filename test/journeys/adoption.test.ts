import { beforeAll, describe, expect, test } from 'vitest';
import { ADOPT_BY_ANNOTATION, APPLIED_HASH_ANNOTATION, PAUSED_ANNOTATION } from '../../src/contract/names.js';
import type { AnyObject } from '../../src/contract/object.js';
import { configMap, deployment, loadBundle, service } from '../support/bundle.js';
import { configMaps, deployments, eventually, services } from '../support/cluster.js';
import { Reconstruct } from '../support/commands.js';
import type { Subject } from '../support/subject.js';
import { cluster, journey } from './support/operator.js';

const { kind: bundle, config } = await loadBundle();
let bundles: Subject;

beforeAll(async () => {
  bundles = await journey(bundle, 'adoption');
});

async function kubectl(input: object | undefined, ...args: readonly string[]): Promise<void> {
  const options = input === undefined ? {} : { stdin: JSON.stringify(input) };
  await cluster.sandbox.kubectl(['-n', bundles.namespace, ...args], options);
}

async function handOver(type: typeof services, name: string): Promise<void> {
  await cluster.merge(
    bundles.childPlace(type, name),
    { metadata: { annotations: { [ADOPT_BY_ANNOTATION]: `Bundle/${name}` } } },
    'kubectl-annotate',
  );
}

const withLabels = (object: object, labels: object): object => {
  const { metadata, ...rest } = object as AnyObject;
  return { ...rest, metadata: { ...metadata, labels } };
};

/** Ways in which an object can have come into being, and the manager that then owns it. */
const origins: readonly [what: string, make: (object: object, name: string) => Promise<void>][] = [
  ['kubectl apply', (object) => kubectl(object, 'apply', '-f', '-')],
  ['kubectl apply --server-side', (object) => kubectl(object, 'apply', '--server-side', '-f', '-')],
  ['kubectl create', (object) => kubectl(object, 'create', '-f', '-')],
  [
    'kubectl replace',
    async (object) => {
      await kubectl({ ...object, spec: undefined, data: undefined }, 'create', '-f', '-').catch(() =>
        kubectl(object, 'create', '-f', '-'),
      );
      // It reads the version first, and the Deployment's own controller may write in between.
      await eventually(() => kubectl(withLabels(object, { replaced: 'yes' }), 'replace', '-f', '-'));
    },
  ],
  [
    'helm',
    async (object) => {
      const { metadata } = object as AnyObject;
      const place = `/apis/apps/v1/namespaces/${bundles.namespace}/deployments`;
      const body = { ...object, metadata: { ...metadata, namespace: bundles.namespace } };
      const { status } = await cluster.send('POST', place, { body, query: { fieldManager: 'helm' } });
      expect(status).toBe(201);
    },
  ],
  [
    'somebody who cleared the record of owners',
    async (object, name) => {
      await kubectl(object, 'create', '-f', '-');
      const patch = [{ op: 'replace', path: '/metadata/managedFields', value: [{}] }];
      await kubectl(undefined, 'patch', 'deployment', name, '--type=json', '-p', JSON.stringify(patch));
    },
  ],
];

test.for(origins.map(([what, make], index) => ({ what, make, name: `adopted-${index}` })))(
  'what others have made is refused, then adopted; what they alone had set goes but for labels, and so does what is dropped of ours: $what',
  async ({ make, name }) => {
    const port = { containerPort: 80, protocol: 'TCP' };
    const container = { name: 'a', image: 'example.com/a:1' };
    const own = {
      ...container,
      env: [{ name: 'OURS', value: '1' }],
      ports: [port, { containerPort: 81, protocol: 'TCP' }],
    };
    // More than we render of the one container, and another one.
    const made = deployment(
      name,
      [
        { ...own, env: [...own.env, { name: 'THEIRS', value: '2' }] },
        { name: 'theirs', image: 'b' },
      ],
      { ours: '1', theirs: '2' },
    );
    await make(made, name);
    const rendered = deployment(name, [own, { name: 'dropped', image: 'c' }], { ours: '1' });
    await bundles.create(name, { objects: [rendered] });
    await bundles.condition(name, { type: 'Stalled', status: 'True', reason: 'OwnershipConflict' });

    await handOver(deployments, name);

    await bundles.condition(name, { type: 'Stalled', status: 'False' });
    const patch = [
      { op: 'add', path: '/spec/template/spec/containers/-', value: { name: 'later', image: 'd' } },
    ];
    await kubectl(undefined, 'patch', 'deployment', name, '--type=json', '-p', JSON.stringify(patch));
    await bundles.edit(name, { objects: [deployment(name, [{ ...container, ports: [port] }])] });
    await eventually(async () => {
      const { metadata, spec } = await cluster.get(bundles.childPlace(deployments, name));
      const { containers } = (spec as { template: { spec: { containers: Record<string, unknown>[] } } })
        .template.spec;
      expect(metadata.labels).not.toHaveProperty('ours');
      expect(containers.map((item) => item.name).sort()).toEqual(['a', 'later']);
      const adopted = containers.find((item) => item.name === 'a')!;
      expect(adopted).not.toHaveProperty('env');
      expect(adopted.ports).toEqual([port]);
      if (metadata.labels && !('replaced' in metadata.labels))
        expect(metadata.labels).toHaveProperty('theirs', '2');
    });
  },
);

const http = { name: 'http', protocol: 'TCP', targetPort: 80 };
const renumbered = [
  { what: 'gets another number', from: [{ ...http, port: 80 }], to: [{ ...http, port: 81 }] },
  {
    what: 'gets another protocol',
    from: [{ ...http, port: 80 }],
    to: [{ ...http, port: 80, protocol: 'UDP' }],
  },
  {
    what: 'gets a sibling with the same number',
    from: [{ ...http, name: 'dns', port: 53, protocol: 'UDP' }],
    to: [
      { ...http, name: 'dns', port: 53, protocol: 'UDP' },
      { ...http, name: 'dns-tcp', port: 53 },
    ],
  },
];

test.for(
  renumbered.flatMap((row, index) => [
    { ...row, when: 'later', name: `later-${index}` },
    { ...row, when: 'with the adoption', name: `at-once-${index}` },
  ]),
)('a port of a Service made by kubectl apply $what $when, exactly', async ({ from, to, when, name }) => {
  await kubectl(service(name, from), 'apply', '-f', '-');
  await bundles.create(name, { objects: [service(name, when === 'later' ? from : to)] });
  await bundles.condition(name, { type: 'Stalled', status: 'True', reason: 'OwnershipConflict' });
  await handOver(services, name);

  if (when === 'later') {
    await bundles.condition(name, { type: 'Ready', status: 'True' });
    await bundles.edit(name, { objects: [service(name, to)] });
  }

  await bundles.condition(name, { type: 'Ready', status: 'True' });
  await eventually(async () => {
    const { spec } = await cluster.get(bundles.childPlace(services, name));
    expect((spec as { ports: object[] }).ports).toEqual(to);
  });
});

test.for([
  { what: 'kubectl apply', name: 'unnamed-kubectl' },
  { what: 'a program that updates', name: 'unnamed-program' },
])('an unnamed port that others have made goes with the adoption: $what', async ({ what, name }) => {
  const made = service(name, [{ port: 8080, protocol: 'TCP', targetPort: 80 }]) as AnyObject;
  if (what === 'kubectl apply') await kubectl(made, 'apply', '-f', '-');
  else
    await cluster.create(services, { ...made, metadata: { ...made.metadata, namespace: bundles.namespace } });
  await handOver(services, name);

  const to = [{ ...http, port: 80 }];
  await bundles.create(name, { objects: [service(name, to)] });

  await bundles.condition(name, { type: 'Ready', status: 'True' });
  expect(await cluster.get(bundles.childPlace(services, name))).toMatchObject({ spec: { ports: to } });
});

test('a field that the API server does not let go stays with the adoption, as do the numbers of an autoscaler', async () => {
  const name = 'kept';
  const container = { name: 'a', image: 'example.com/a:1' };
  const made = deployment(name, [container]);
  const { spec } = made as AnyObject & { spec: { replicas: number } };
  const { replicas: _, ...rest } = spec;
  await kubectl({ ...made, spec: { ...spec, minReadySeconds: 3 } }, 'apply', '-f', '-');
  await handOver(deployments, name);

  const configMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { a: '1' } };
  await kubectl({ ...configMap, immutable: true }, 'apply', '-f', '-');
  const offer = `${ADOPT_BY_ANNOTATION}=Bundle/${name}`;
  await kubectl(undefined, 'annotate', 'configmap', name, offer);
  await bundles.create(name, { objects: [{ ...made, spec: rest }, configMap] });

  await bundles.condition(name, { type: 'Stalled', status: 'False' });
  const live = await cluster.get(bundles.childPlace(deployments, name));
  expect(live).toMatchObject({ spec: { replicas: 0 } });
  expect(live.spec).not.toHaveProperty('minReadySeconds');
  expect(await cluster.get(bundles.childPlace(configMaps, name))).toMatchObject({
    immutable: true,
    metadata: { ownerReferences: [{ kind: 'Bundle', name }] },
  });
});

describe('a child without owner', () => {
  const ports = [{ ...http, port: 80 }];
  const place = (name: string) => bundles.childPlace(services, name);
  const ofOwner = { metadata: { ownerReferences: [{ kind: 'Bundle', controller: true }] } };

  test('that has lost its owner reference is taken back', async () => {
    await bundles.create('lost', { objects: [service('lost', ports)] });
    await bundles.condition('lost', { type: 'Ready', status: 'True' });

    await cluster.merge(place('lost'), { metadata: { ownerReferences: null } }, 'kubectl-patch');

    await eventually(async () => {
      expect(await cluster.get(place('lost'))).toMatchObject(ofOwner);
    });
  });

  test('that is kept by --cascade=orphan is left to its keeper, as a copy of it is, until it is handed over', async () => {
    const spec = { objects: [service('orphan', ports)] };
    await bundles.create('orphan', spec);
    await bundles.condition('orphan', { type: 'Ready', status: 'True' });
    await kubectl(undefined, 'delete', 'bundle', 'orphan', '--cascade=orphan');
    const { metadata, spec: left } = await cluster.get(place('orphan'));
    expect(metadata.ownerReferences ?? []).toEqual([]);
    const { labels, annotations } = metadata;
    expect(annotations).toHaveProperty([APPLIED_HASH_ANNOTATION]);
    const { ports: copied } = left as { ports: Record<string, unknown>[] };
    const copy = {
      ...service('copy', copied),
      metadata: { name: 'copy', annotations, labels: copyLabels(labels) },
    };
    await kubectl(copy, 'apply', '-f', '-');

    await bundles.create('orphan', spec);
    await bundles.create('copy', { objects: [service('copy', ports)] });

    for (const name of ['orphan', 'copy'])
      await bundles.condition(name, { type: 'Stalled', status: 'True', reason: 'OwnershipConflict' });
    const kept = await cluster.get(place('orphan'));
    expect([kept.metadata.resourceVersion, kept.metadata.ownerReferences ?? []]).toEqual([
      metadata.resourceVersion,
      [],
    ]);
    await handOver(services, 'orphan');
    await bundles.condition('orphan', { type: 'Ready', status: 'True' });
    const live = await cluster.get(place('orphan'));
    expect(live).toMatchObject(ofOwner);
    expect(live.metadata.uid).toBe(metadata.uid);
    // It doesn't hold for the next one of that name.
    expect(live.metadata.annotations).not.toHaveProperty([ADOPT_BY_ANNOTATION]);
  });

  const copyLabels = (labels: object = {}): object =>
    Object.fromEntries(
      Object.entries(labels).map(([name, value]) => [name, value === 'orphan' ? 'copy' : (value as string)]),
    );
});

describe('reconstruct adopt', () => {
  const objects = (name: string): object[] => [
    configMap(name, { a: '1' }),
    service(name, [{ ...http, port: 80 }]),
  ];
  const cr = (name: string): object => ({
    ...{
      apiVersion: bundle.type.apiVersion,
      kind: 'Bundle',
      metadata: { name, namespace: bundles.namespace },
    },
    spec: { objects: objects(name) },
  });
  const offerOf = async (type: typeof services, name: string): Promise<string | undefined> =>
    (await cluster.get(bundles.childPlace(type, name))).metadata.annotations?.[ADOPT_BY_ANNOTATION];
  const adopter = (): Reconstruct =>
    new Reconstruct('adopt', cluster.sandbox.kubeconfig('admin'), [
      '--config',
      config,
      '-n',
      bundles.namespace,
    ]);

  test('shows what would change, and hands over what it is told to, for one that is live or in a file', async () => {
    await kubectl(configMap('live', { a: '0', b: '2' }), 'create', '-f', '-');
    await kubectl(service('live', [{ port: 8080, protocol: 'TCP', targetPort: 80 }]), 'create', '-f', '-');
    await bundles.create('live', { objects: objects('live') });
    await bundles.condition('live', { type: 'Stalled', status: 'True', reason: 'OwnershipConflict' });

    const asked = await adopter().run('bundle', 'live');
    expect(asked).toMatchObject({ code: 2, stdout: '' });
    expect(asked.stderr).toContain('there is no terminal: add --yes, or --dry-run');
    const shown = await adopter().run('bundle/live', '--dry-run');
    expect(shown).toMatchObject({ code: 0, stderr: '' });
    expect(shown.stdout).toContain('  .data.a is taken from kubectl-create\n');
    expect(shown.stdout).toContain('  .data.b is dropped, which is set by kubectl-create\n');
    expect(shown.stdout).toContain('.spec.ports[port=8080,protocol="TCP"] is dropped');
    expect(shown.stdout).not.toContain(ADOPT_BY_ANNOTATION);
    expect(await offerOf(services, 'live')).toBeUndefined();

    const { code, stdout } = await adopter().run('bundle', 'live', '--yes');
    expect(code).toBe(0);
    expect(stdout).toContain(`ConfigMap ${bundles.namespace}/live handed over to Bundle/live\n`);
    await bundles.condition('live', { type: 'Ready', status: 'True' });
    expect(await cluster.get(bundles.childPlace(configMaps, 'live'))).toMatchObject({ data: { a: '1' } });

    await kubectl(configMap('filed', { b: '2' }), 'create', '-f', '-');
    expect(await adopter().of([cr('filed')], '--yes')).toMatchObject({ code: 0 });
    expect(await offerOf(configMaps, 'filed')).toBe('Bundle/filed');
    expect(await adopter().of([cr('filed')], '--yes')).toMatchObject({ code: 0 });

    const lost = await adopter().run('no-such.yaml', '--yes');
    expect([lost.code, lost.stderr]).toEqual([
      2,
      expect.stringMatching(/^no-such\.yaml: can't be read: there is no/),
    ]);
  });

  test('hands over to a custom resource that is paused', async () => {
    await kubectl(configMap('paused', { b: '2' }), 'create', '-f', '-');
    const metadata = { name: 'paused', annotations: { [PAUSED_ANNOTATION]: 'true' } };

    const { code, stdout } = await adopter().of([{ ...cr('paused'), metadata }], '--yes');

    expect(code).toBe(0);
    expect(stdout).toContain('  .data.b is dropped, which is set by kubectl-create\n');
    expect(await offerOf(configMaps, 'paused')).toBe('Bundle/paused');
  });

  const helm = { 'meta.helm.sh/release-name': 'shop', 'meta.helm.sh/release-namespace': 'web' };
  test.for([
    { what: 'has a controller', name: 'owned', why: 'is controlled by Bundle owner' },
    {
      what: 'Helm would delete',
      name: 'released',
      metadata: { annotations: helm },
      why: 'belongs to the Helm release web/shop, which would delete it',
    },
    {
      what: 'is promised to another',
      name: 'promised',
      metadata: { annotations: { [ADOPT_BY_ANNOTATION]: 'Bundle/other' } },
      why: 'is handed over to Bundle/other already',
    },
  ])('refuses an object that $what, and hands over nothing', async ({ name, metadata, why }) => {
    const [map, made] = objects(name) as [AnyObject, AnyObject];
    await kubectl(map, 'create', '-f', '-');
    if (metadata) await kubectl({ ...made, metadata: { name, ...metadata } }, 'create', '-f', '-');
    else {
      await bundles.create('owner', { objects: [made] });
      await bundles.condition('owner', { type: 'Ready', status: 'True' });
    }

    const { code, stderr } = await adopter().of([cr(name)], '--yes');

    expect(code).toBe(3);
    expect(stderr).toContain(`Service ${bundles.namespace}/${name} `);
    expect(stderr).toContain(why);
    expect(stderr).toContain('Nothing was handed over');
    expect(await offerOf(configMaps, name)).toBeUndefined();
  });
});
