import { describe, expect, it } from 'vitest';
import type { AnyObject } from '../../src/contract/object.js';
import { isSameApply } from '../../src/engine/steps/memory.js';
import { FieldPaths, hasDrifted, ownerKey } from '../../src/engine/steps/managed-fields.js';
import { anObject, applied, DEPLOYMENT, MANAGER, ownedBy, SERVICE, WIDGET } from './support/builders.js';

/** As kube-apiserver 1.36 recorded it for the intent below. */
const DEPLOYMENT_FIELDS = {
  'f:metadata': {
    'f:annotations': { 'f:reconstruct.kosmos.io/applied-hash': {} },
    'f:labels': { 'f:app': {}, 'f:app.kubernetes.io/name': {}, 'f:kosmos.io/appservice': {} },
    'f:ownerReferences': { 'k:{"uid":"uid-web"}': {} },
  },
  'f:spec': {
    'f:replicas': {},
    'f:selector': {},
    'f:template': {
      'f:metadata': { 'f:labels': { 'f:app': {} } },
      'f:spec': {
        'f:containers': {
          'k:{"name":"web"}': {
            '.': {},
            'f:args': {},
            'f:env': {
              'k:{"name":"A"}': { '.': {}, 'f:name': {}, 'f:value': {} },
              'k:{"name":"B"}': { '.': {}, 'f:name': {}, 'f:valueFrom': { 'f:fieldRef': {} } },
            },
            'f:image': {},
            'f:name': {},
            'f:ports': {
              'k:{"containerPort":53,"protocol":"UDP"}': { '.': {}, 'f:containerPort': {}, 'f:protocol': {} },
              'k:{"containerPort":80,"protocol":"TCP"}': { '.': {}, 'f:containerPort': {}, 'f:protocol': {} },
            },
            'f:resources': { 'f:limits': { 'f:cpu': {} } },
          },
        },
      },
    },
  },
};

const CONTAINER = {
  name: 'web',
  image: 'nginx:1.7.9',
  args: ['-v', '-q'],
  env: [
    { name: 'A', value: '1' },
    { name: 'B', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
  ],
  ports: [
    { containerPort: 53, protocol: 'UDP' },
    { containerPort: 80, protocol: 'TCP' },
  ],
  resources: { limits: { cpu: '1' } },
};

function deployment(container: object = CONTAINER, spec: object = {}): AnyObject {
  return anObject(
    DEPLOYMENT,
    'web',
    {
      annotations: { 'reconstruct.kosmos.io/applied-hash': 'h' },
      labels: { app: 'web', 'app.kubernetes.io/name': 'web', 'kosmos.io/appservice': 'web' },
      ownerReferences: [ownedBy('web')],
    },
    {
      spec: {
        replicas: 1,
        selector: { matchLabels: { 'kosmos.io/appservice': 'web' } },
        template: { metadata: { labels: { app: 'web' } }, spec: { containers: [container] } },
        ...spec,
      },
    },
  );
}

/** What remains of a tree when one path is taken out. */
function without(tree: object, [first = '', ...rest]: readonly string[]): object {
  const { [first]: child, ...others } = tree as Record<string, object>;
  if (child === undefined) throw new Error(`no ${first} here`);
  return rest.length === 0 ? others : { ...others, [first]: without(child, rest) };
}

const RECORD = { 'f:annotations': { 'f:reconstruct.kosmos.io/applied-hash': {} } };

/** An object that we have applied. */
function live(fields: object, ...others: object[]): AnyObject {
  return anObject(DEPLOYMENT, 'web', {
    managedFields: [applied(MANAGER, recorded(fields), 'apps/v1'), ...others],
  });
}

const recorded = (fields: object): object => {
  const { 'f:metadata': metadata = {}, ...rest } = fields as Record<string, object>;
  return { 'f:metadata': { ...RECORD, ...metadata }, ...rest };
};

/** An intent with the record that every apply carries. */
const recording = (intent: object): object => {
  const { metadata = {}, ...rest } = intent as Record<string, object>;
  return { metadata: { annotations: { 'reconstruct.kosmos.io/applied-hash': 'h' }, ...metadata }, ...rest };
};

/** Of the paths alone, whatever the object has there. */
function ownedDigest(paths: FieldPaths, object: AnyObject, owner = MANAGER): string | undefined {
  return paths.owned(object).get(owner)?.slice(0, 16);
}

const CONTAINERS = ['f:spec', 'f:template', 'f:spec', 'f:containers'];
const WEB = [...CONTAINERS, 'k:{"name":"web"}'];

describe('FieldPaths', () => {
  it('expects for a Deployment what the API server records for it', () => {
    const paths = new FieldPaths();
    const owned = ownedDigest(paths, live(DEPLOYMENT_FIELDS));
    expect(owned).toMatch(/^\S{16}$/);
    expect(paths.expected(deployment())).toBe(owned);
  });

  it('expects for a Service what the API server records for it', () => {
    const paths = new FieldPaths();
    const service = anObject(SERVICE, 'web', { labels: { app: 'web' } });
    const spec = {
      type: 'NodePort',
      selector: { app: 'web' },
      ports: [
        { name: 'dns', port: 53, protocol: 'UDP', targetPort: 53 },
        { name: 'dns-tcp', port: 53, protocol: 'TCP', targetPort: 'dns' },
      ],
    };
    const port = { '.': {}, 'f:name': {}, 'f:port': {}, 'f:protocol': {}, 'f:targetPort': {} };
    const fields = {
      'f:metadata': { 'f:labels': { 'f:app': {} } },
      'f:spec': {
        'f:ports': { 'k:{"port":53,"protocol":"TCP"}': port, 'k:{"port":53,"protocol":"UDP"}': port },
        'f:selector': {},
        'f:type': {},
      },
    };
    expect(ownedDigest(paths, live(fields))).toBe(paths.expected(recording({ ...service, spec })));
  });

  it.each([
    ['a scalar', ['f:spec', 'f:replicas']],
    ['a label', ['f:metadata', 'f:labels', 'f:app']],
    ['the owner reference', ['f:metadata', 'f:ownerReferences', 'k:{"uid":"uid-web"}']],
    ['the selector as a whole', ['f:spec', 'f:selector']],
    ['an atomic list', [...WEB, 'f:args']],
    ['a list item', [...WEB, 'f:ports', 'k:{"containerPort":53,"protocol":"UDP"}']],
    ['a field of a list item', [...WEB, 'f:env', 'k:{"name":"A"}', 'f:value']],
    ['all items of a list', [...WEB, 'f:env']],
  ])('sees that %s was taken from us', (_, path) => {
    const paths = new FieldPaths();
    paths.owned(live(DEPLOYMENT_FIELDS));
    const drifted = ownedDigest(paths, live(without(DEPLOYMENT_FIELDS, path)));
    expect(drifted).not.toBe(paths.expected(deployment()));
  });

  it('spells list keys as the server does, whatever the order and spacing of their JSON', () => {
    const paths = new FieldPaths();
    const spelled = (key: string): object => ({
      'f:spec': { 'f:ports': { [key]: { '.': {}, 'f:port': {} } } },
    });
    const one = ownedDigest(paths, live(spelled('k:{"port":53,"protocol":"UDP"}')));
    expect(ownedDigest(paths, live(spelled('k:{"protocol": "UDP", "port": 53}')))).toBe(one);
    expect(ownedDigest(paths, live(spelled('k:{"port":"53","protocol":"UDP"}')))).not.toBe(one);
  });

  it('expects a list key that the schema has a default for, and the intent leaves out', () => {
    const paths = new FieldPaths();
    // As kube-apiserver 1.36 recorded it.
    const port = { '.': {}, 'f:name': {}, 'f:port': {}, 'f:targetPort': {} };
    const fields = { 'f:spec': { 'f:ports': { 'k:{"port":80,"protocol":"TCP"}': port } } };
    const owned = ownedDigest(paths, live(fields));
    const intent = { name: 'http', port: 80, targetPort: 8080 };
    const expected = (port: object): string => paths.expected(recording({ spec: { ports: [port] } }));
    expect(expected(intent)).toBe(owned);
    expect(expected({ ...intent, protocol: 'UDP' })).not.toBe(owned);
    expect(expected({ ...intent, port: 81 })).not.toBe(owned);
  });

  it('expects nothing of an empty list that is merged by items, and the list where it is owned as a whole', () => {
    const paths = new FieldPaths();
    // As kube-apiserver 1.36 recorded it for `{ args: [], env: [], resources: { claims: [] } }`; the other for `env: null`.
    const web = { '.': {}, 'f:args': {}, 'f:name': {} };
    const fields = (container: object): object => ({
      'f:spec': { 'f:containers': { 'k:{"name":"web"}': container } },
    });
    const intent = (container: object): object =>
      recording({ spec: { containers: [{ name: 'web', ...container }] } });
    const of = (container: object): string => paths.owned(live(fields(container))).get(MANAGER)!;
    const owned = of(web);
    const nulled = of({ ...web, 'f:env': {} });

    expect(paths.expected(intent({ args: [], env: [], resources: { claims: [] } }), owned)).toBe(owned);
    expect(paths.expected(intent({ args: [], env: null }), nulled)).toBe(nulled);
    expect(paths.expected(intent({ args: [], env: null }), owned)).not.toBe(owned);
    expect(paths.expected(intent({ args: ['-a'], env: [{ name: 'A' }] }), owned)).not.toBe(owned);
  });

  const byOthers = (fields: object, operation = 'Update'): object => ({
    ...applied('other', fields, 'apps/v1'),
    operation,
  });
  const keyedByImage = (name: string): object => ({
    'f:spec': {
      'f:template': { 'f:spec': { 'f:containers': { [`k:{"image":"${name}"}`]: { 'f:image': {} } } } },
    },
  });

  it.each([
    ['updating', byOthers(keyedByImage('x'))],
    ['applying', byOthers(keyedByImage('x'), 'Apply')],
    ['writing an empty list', byOthers({ 'f:spec': { 'f:template': { 'f:spec': { 'f:containers': {} } } } })],
  ])('learns nothing from what others record, %s', (_, entry) => {
    const paths = new FieldPaths();
    paths.owned(anObject(DEPLOYMENT, 'other', { managedFields: [entry] }));
    const owned = ownedDigest(paths, live(DEPLOYMENT_FIELDS, entry));
    expect(paths.expected(deployment())).toBe(owned);
  });

  it('believes most objects, and not the one whose record was forged, in whichever order they come', () => {
    const forged = anObject(DEPLOYMENT, 'forged', {
      managedFields: [applied(MANAGER, recorded(keyedByImage('x')))],
    });
    for (const objects of [
      [forged, live(DEPLOYMENT_FIELDS), live(DEPLOYMENT_FIELDS)],
      [live(DEPLOYMENT_FIELDS), live(DEPLOYMENT_FIELDS), forged],
    ]) {
      const paths = new FieldPaths();
      for (const object of objects) paths.owned(object);
      expect(paths.expected(deployment())).toBe(ownedDigest(paths, live(DEPLOYMENT_FIELDS)));
    }
  });

  it('does not take a map that most have applied empty, and that defaults have filled, to be owned as a whole', () => {
    const paths = new FieldPaths();
    const fields = (strategy: object) => ({ 'f:spec': { 'f:strategy': strategy } });
    const filled = { ...live(fields({})), spec: { strategy: { type: 'RollingUpdate' } } };
    const intent = recording({ spec: { strategy: {} } });
    const set = live(fields({ 'f:type': {} }));
    for (const object of [filled, set, filled, filled]) paths.owned(object);
    paths.expectedAfter(filled, MANAGER, intent, 'another');
    const expected = paths.expected(recording({ spec: { strategy: { type: 'Recreate' } } }));
    expect(expected).toBe(ownedDigest(paths, set));
  });

  it('learns from the answer to an apply of ours what made-up fields of one object have left no room for', () => {
    const paths = new FieldPaths();
    const many = Object.fromEntries(Array.from({ length: 9_999 }, (_, n) => [`f:x${n}`, { 'f:x': {} }]));
    const forged = anObject(DEPLOYMENT, 'forged', {
      managedFields: [applied(MANAGER, recorded({ 'f:status': many }))],
    });
    const answer = live(DEPLOYMENT_FIELDS);
    paths.owned(forged);
    const owned = ownedDigest(paths, answer);
    expect(paths.expected(deployment(), owned)).not.toBe(owned);
    expect(paths.expectedAfter(answer, MANAGER, deployment(), owned)).toBe(owned);
  });

  it('knows after an answer that what was applied empty is merged, also where made-up fields have left no room', () => {
    const paths = new FieldPaths();
    const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, n) => [`f:x${n}`, { 'f:x': {} }]));
    paths.owned(
      anObject(DEPLOYMENT, 'forged', { managedFields: [applied(MANAGER, recorded({ 'f:status': many }))] }),
    );
    const intent = deployment({ ...CONTAINER, volumeMounts: [] });
    const answer = live(DEPLOYMENT_FIELDS);
    const owned = ownedDigest(paths, answer);
    expect(paths.expectedAfter(answer, MANAGER, intent, owned)).toBe(owned);
  });

  it('believes the answer to an apply of ours more than what stands on objects, whoever has forged it', () => {
    const paths = new FieldPaths();
    const forged = anObject(DEPLOYMENT, 'forged', {
      managedFields: [applied(MANAGER, recorded(keyedByImage('x')))],
    });
    const answer = live(DEPLOYMENT_FIELDS);
    const owned = ownedDigest(paths, answer);
    for (let count = 0; count < 3; count++) paths.owned(forged);
    expect(paths.expected(deployment())).not.toBe(owned);
    expect(paths.expectedAfter(answer, MANAGER, deployment(), owned)).toBe(owned);
    paths.owned(forged);
    expect(paths.expected(deployment())).toBe(owned);
  });

  it.each([
    ['of a container', 'containers', 'k:{"name":"web"}', { name: 'web' }],
    ['of an item whose key has a default', 'ports', 'k:{"port":80,"protocol":"TCP"}', { port: 80 }],
  ])(
    'sees that a list %s was filled, which was applied empty and is owned as a whole',
    (_, list, item, key) => {
      const paths = new FieldPaths();
      const fields = (of: object): object => ({ 'f:spec': { [`f:${list}`]: { [item]: of } } });
      const ownKey = Object.fromEntries(Object.keys(key).map((name) => [`f:${name}`, {}]));
      const own = (of: object): object => fields({ '.': {}, ...ownKey, ...of });
      const intent = recording({ spec: { [list]: [{ ...key, args: [] }] } });
      const of = (object: AnyObject): string => paths.owned(object).get(MANAGER)!;
      const asApplied = of(live(own({ 'f:args': {} })));
      expect(paths.expected(intent, asApplied)).toBe(asApplied);
      // A writer that patches doesn't own the key.
      const filled = {
        ...live(own({}), byOthers(fields({ 'f:args': {} }))),
        spec: { [list]: [{ ...(JSON.parse(item.slice(2)) as object), args: ['-v'] }] },
      };
      const taken = of(filled);
      expect(paths.expected(intent, taken)).not.toBe(taken);
    },
  );

  it.each([
    [
      'another writer sets a list that we do not name',
      byOthers({ 'f:spec': { 'f:tolerations': {} } }),
      { emptyDir: {}, tolerations: [{}] },
    ],
    [
      'another writer fills a map that we have applied empty',
      byOthers({ 'f:spec': { 'f:emptyDir': { 'f:medium': {} } } }),
      { emptyDir: { medium: 'Memory' } },
    ],
  ])('sees no drift, and the same apply, where %s', (_, entry, spec) => {
    const paths = new FieldPaths();
    const annotations = { 'reconstruct.kosmos.io/applied-hash': 'h' };
    const seen = (object: AnyObject) => ({
      object: { ...object, metadata: { ...object.metadata, annotations } },
      owned: paths.owned(object),
    });
    const own = { 'f:spec': { 'f:emptyDir': {} } };
    const before = seen({ ...live(own), spec: { emptyDir: {} } });
    const after = seen({ ...live(own, entry), spec });
    expect(hasDrifted(before, after)).toBe(false);
    const lastApply = ({ owned }: typeof before) => ({ hash: 'h', uid: '1', owned: owned.get(MANAGER) });
    expect(isSameApply(lastApply(before), lastApply(after))).toBe(true);
  });

  it('does not learn without end from names that another writer makes up', () => {
    const paths = new FieldPaths();
    const routes = (n: number) => ({ [`r${n}`]: { port: n } });
    const entry = (n: number) => ({ 'f:spec': { 'f:routes': { [`f:r${n}`]: { 'f:port': {} } } } });
    const owned = (n: number) => {
      const managedFields = [applied(MANAGER, recorded(entry(n)))];
      return paths
        .owned({ ...anObject(WIDGET, 'web'), metadata: { name: 'web', managedFields } as never })
        .get(ownerKey(MANAGER))!
        .slice(0, 16);
    };
    const expected = (n: number) => paths.expected(recording({ spec: { routes: routes(n) } }));
    owned(0);
    for (let n = 1; n < 20_000; n++) owned(n);
    expect(expected(0)).toBe(owned(0));
    expect(expected(19_999)).not.toBe(owned(19_999));
  });
});
