import { beforeAll, expect, test } from 'vitest';
import { ADOPT_BY_ANNOTATION } from '../../src/contract/names.js';
import type { AnyObject } from '../../src/contract/object.js';
import { deployment, loadBundle, service } from '../support/bundle.js';
import { deployments, eventually, services } from '../support/cluster.js';
import type { Subject } from '../support/subject.js';
import { cluster, journey } from './support/operator.js';

const { kind: bundle } = await loadBundle();
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
  'what $what has made is refused, then adopted; what is dropped of ours vanishes, and what others added stays',
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
    await bundles.edit(name, { objects: [deployment(name, [{ ...container, ports: [port] }])] });
    await eventually(async () => {
      const { metadata, spec } = await cluster.get(bundles.childPlace(deployments, name));
      const { containers } = (spec as { template: { spec: { containers: Record<string, unknown>[] } } })
        .template.spec;
      expect(metadata.labels).not.toHaveProperty('ours');
      expect(containers.map((item) => item.name).sort()).toEqual(['a', 'theirs']);
      expect(containers.find((item) => item.name === 'a')).toMatchObject({
        env: [{ name: 'THEIRS', value: '2' }],
        ports: [port],
      });
      expect(containers.find((item) => item.name === 'a')!.ports).toHaveLength(1);
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
