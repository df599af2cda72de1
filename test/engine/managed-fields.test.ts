import { describe, expect, it } from 'vitest';
import type { AnyObject } from '../../src/contract/object.js';
import { isSameApply } from '../../src/engine/steps/memory.js';
import { hasDrifted, holds, ownedFields, stands } from '../../src/engine/steps/managed-fields.js';
import { anObject, applied, DEPLOYMENT, MANAGER, ownedBy, SERVICE } from './support/builders.js';

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

/** A tree with one more leaf. */
function withAt(tree: object, [first = '', ...rest]: readonly string[], leaf: object): object {
  const { [first]: child = {}, ...others } = tree as Record<string, object>;
  return { ...others, [first]: rest.length === 0 ? leaf : withAt(child, rest, leaf) };
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

/** Reports whether an apply of an intent stands, by what is recorded on an object. */
function standsOn(object: AnyObject, intent: object): boolean {
  return stands({ object, owned: ownedFields(object) }, MANAGER, intent);
}

const CONTAINERS = ['f:spec', 'f:template', 'f:spec', 'f:containers'];
const WEB = [...CONTAINERS, 'k:{"name":"web"}'];

describe('stands', () => {
  it('holds for what the API server records for a Deployment', () => {
    expect(standsOn(live(DEPLOYMENT_FIELDS), deployment())).toBe(true);
  });

  it('holds for what the API server records for a Service', () => {
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
    expect(standsOn(live(fields), recording({ ...service, spec }))).toBe(true);
  });

  it.each([
    ['a scalar', ['f:spec', 'f:replicas']],
    ['a label', ['f:metadata', 'f:labels', 'f:app']],
    ['the owner reference', ['f:metadata', 'f:ownerReferences']],
    ['the selector as a whole', ['f:spec', 'f:selector']],
    ['an atomic list', [...WEB, 'f:args']],
    ['a list item', [...WEB, 'f:ports', 'k:{"containerPort":53,"protocol":"UDP"}']],
    ['a field of a list item', [...WEB, 'f:env', 'k:{"name":"A"}', 'f:value']],
    ['all items of a list', [...WEB, 'f:env']],
  ])('sees that %s was taken from us', (_, path) => {
    expect(standsOn(live(without(DEPLOYMENT_FIELDS, path)), deployment())).toBe(false);
  });

  it.each([
    ['a field', ['f:spec', 'f:paused'], {}],
    ['a label', ['f:metadata', 'f:labels', 'f:more'], {}],
    ['a list item', [...WEB, 'f:env', 'k:{"name":"C"}'], { '.': {}, 'f:name': {} }],
    ['what is below a field', ['f:spec', 'f:replicas', 'f:more'], {}],
  ])('sees that %s is ours which is not wanted', (_, path, leaf) => {
    expect(standsOn(live(withAt(DEPLOYMENT_FIELDS, path, leaf)), deployment())).toBe(false);
  });

  it('holds for a list key that the schema has a default for, and the intent leaves out', () => {
    // As kube-apiserver 1.36 recorded it.
    const port = { '.': {}, 'f:name': {}, 'f:port': {}, 'f:targetPort': {} };
    const object = live({ 'f:spec': { 'f:ports': { 'k:{"port":80,"protocol":"TCP"}': port } } });
    const intent = { name: 'http', port: 80, targetPort: 8080 };
    const standsFor = (port: object): boolean => standsOn(object, recording({ spec: { ports: [port] } }));
    expect(standsFor(intent)).toBe(true);
    expect(standsFor({ ...intent, protocol: 'UDP' })).toBe(false);
    expect(standsFor({ ...intent, port: 81 })).toBe(false);
  });

  it('goes by the values of a set', () => {
    const object = live({ 'f:spec': { 'f:zones': { 'v:"a"': {}, 'v:"b"': {} } } });
    const standsFor = (...zones: string[]): boolean => standsOn(object, recording({ spec: { zones } }));
    expect(standsFor('b', 'a')).toBe(true);
    expect(standsFor('a')).toBe(false);
    expect(standsFor('a', 'c')).toBe(false);
  });

  it('expects nothing of an empty list that is merged by items, and the list where it is owned as a whole', () => {
    // As kube-apiserver 1.36 recorded it for `{ args: [], env: [], resources: { claims: [] } }`; the other for `env: null`.
    const web = { '.': {}, 'f:args': {}, 'f:name': {} };
    const nulled = { ...web, 'f:env': {} };
    const standsFor = (container: object, intent: object): boolean =>
      standsOn(
        live({ 'f:spec': { 'f:containers': { 'k:{"name":"web"}': container } } }),
        recording({ spec: { containers: [{ name: 'web', ...intent }] } }),
      );
    expect(standsFor(web, { args: [], env: [], resources: { claims: [] } })).toBe(true);
    expect(standsFor(nulled, { args: [], env: null })).toBe(true);
    expect(standsFor(web, { args: [], env: null })).toBe(false);
    expect(standsFor(web, { args: ['-a'], env: [{ name: 'A' }] })).toBe(false);
  });

  it('counts a status only where the type has it as a part of the object', () => {
    const intent = recording({ spec: { replicas: 1 }, status: { replicas: 1 } });
    const spec = { 'f:spec': { 'f:replicas': {} } };
    expect(standsOn(live(spec), intent)).toBe(true);
    expect(standsOn(live({ ...spec, 'f:status': { 'f:replicas': {} } }), intent)).toBe(true);
    expect(standsOn(live({ ...spec, 'f:status': { 'f:other': {} } }), intent)).toBe(false);
  });

  const byOthers = (fields: object, operation = 'Update'): object => ({
    ...applied('other', fields, 'apps/v1'),
    operation,
  });

  it.each([
    ['of a container', 'containers', 'k:{"name":"web"}', { name: 'web' }],
    ['of an item whose key has a default', 'ports', 'k:{"port":80,"protocol":"TCP"}', { port: 80 }],
  ])(
    'sees that a list %s was filled, which was applied empty and is owned as a whole',
    (_, list, item, key) => {
      const fields = (of: object): object => ({ 'f:spec': { [`f:${list}`]: { [item]: of } } });
      const ownKey = Object.fromEntries(Object.keys(key).map((name) => [`f:${name}`, {}]));
      const own = (of: object): object => fields({ '.': {}, ...ownKey, ...of });
      const intent = recording({ spec: { [list]: [{ ...key, args: [] }] } });
      expect(standsOn(live(own({ 'f:args': {} })), intent)).toBe(true);
      // A writer that patches doesn't own the key.
      expect(standsOn(live(own({}), byOthers(fields({ 'f:args': {} }))), intent)).toBe(false);
      const added = { 'f:args': { 'k:{"name":"a"}': { '.': {}, 'f:name': {} } } };
      expect(standsOn(live(own({}), byOthers(fields(added))), intent)).toBe(true);
    },
  );

  it.each([
    ['another writer sets a list that we do not name', byOthers({ 'f:spec': { 'f:tolerations': {} } })],
    [
      'another writer fills a map that we have applied empty',
      byOthers({ 'f:spec': { 'f:emptyDir': { 'f:medium': {} } } }),
    ],
  ])('sees no drift, and the same apply, where %s', (_, entry) => {
    const annotations = { 'reconstruct.kosmos.io/applied-hash': 'h' };
    const seen = (object: AnyObject) => ({
      object: { ...object, metadata: { ...object.metadata, annotations } },
      owned: ownedFields(object),
    });
    const own = { 'f:spec': { 'f:emptyDir': {} } };
    const before = seen(live(own));
    const after = seen(live(own, entry));
    expect(hasDrifted(before, after)).toBe(false);
    const lastApply = ({ owned }: typeof before) => ({ hash: 'h', uid: '1', owned: owned.get(MANAGER) });
    expect(isSameApply(lastApply(before), lastApply(after))).toBe(true);
  });

  it('keeps the entries of objects of one shape once, whatever their names and owners', () => {
    const fields = (name: string, uid: string): object => ({
      'f:metadata': { ...RECORD, 'f:ownerReferences': { [`k:{"uid":"${uid}"}`]: {} } },
      'f:spec': { 'f:containers': { [`k:{"name":"${name}"}`]: { '.': {}, 'f:name': {} } } },
    });
    const of = (name: string, uid: string, recordedName = name): AnyObject =>
      anObject(DEPLOYMENT, name, {
        ownerReferences: [{ ...ownedBy('web'), uid }],
        managedFields: [applied(MANAGER, fields(recordedName, uid))],
      });
    expect(ownedFields(of('shop', 'uid-1'))).toBe(ownedFields(of('web', 'uid-2')));
    const [one, another] = [of('f', 'uid-1'), of('k:', 'uid-2')];
    for (const [object, name] of [
      [one, 'f'],
      [another, 'k:'],
    ] as const) {
      const intent = {
        metadata: {
          annotations: object.metadata.annotations ?? { 'reconstruct.kosmos.io/applied-hash': 'h' },
        },
        spec: { containers: [{ name }] },
      };
      const { ownerReferences } = object.metadata;
      const owned = { ...intent, metadata: { ...intent.metadata, ownerReferences } };
      expect(standsOn(object, owned)).toBe(true);
      expect(standsOn(of(name, 'uid-1', 'other'), owned)).toBe(false);
    }
  });
});

describe('holds', () => {
  const condition = { '.': {}, 'f:type': {}, 'f:status': {} };
  const object = live({
    'f:status': {
      'f:conditions': { 'k:{"type":"Ready"}': condition, 'k:{"type":"Stalled"}': condition },
      'f:phases': {},
    },
  });
  const wanted = {
    conditions: [
      { type: 'Ready', status: 'True' },
      { type: 'Stalled', status: 'False' },
    ],
    phases: ['a', 'b'],
    none: [],
  };
  const holdsFor = (status: object): boolean =>
    holds({ object, owned: ownedFields(object) }, MANAGER, { status }, { status: wanted });

  it('goes by value, and leaves what others have beside ours', () => {
    const [ready, stalled] = wanted.conditions;
    const others = { type: 'Others', status: 'True' };
    expect(holdsFor({ ...wanted, more: 1, conditions: [others, stalled, { ...ready, reason: 'x' }] })).toBe(
      true,
    );
    expect(holdsFor({ ...wanted, conditions: [ready] })).toBe(false);
    expect(holdsFor({ ...wanted, conditions: [ready, { ...stalled, status: 'True' }] })).toBe(false);
    expect(holdsFor({ ...wanted, conditions: undefined })).toBe(false);
  });

  it('wants a list that is owned as a whole to be the same', () => {
    expect(holdsFor({ ...wanted, phases: ['a'] })).toBe(false);
    expect(holdsFor({ ...wanted, phases: ['b', 'a'] })).toBe(false);
  });
});
