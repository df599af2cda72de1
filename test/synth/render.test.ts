import { ApiObject, App, Chart, JsonPatch, Lazy } from 'cdk8s';
import { Construct } from 'constructs';
import { describe, expect, test, vi } from 'vitest';
import { OperatorError } from '../../src/contract/error.js';
import type { CustomResourceProps } from '../../src/contract/kind.js';
import type { AnyObject } from '../../src/contract/object.js';
import { resourceType } from '../../src/contract/resource.js';
import { render, Renderer } from '../../src/render/renderer.js';
import { synthesize } from '../../src/render/synthesize.js';
import { inTime } from '../../src/render/time-limit.js';
import type { WidgetSpec } from './fixtures.js';
import { widget, widgetKind } from './fixtures.js';

type Build = (scope: Construct, props: CustomResourceProps<WidgetSpec>) => void;

/** A kind whose construct does what the function says. */
function kindThat(build: Build, scope: 'Namespaced' | 'Cluster' = 'Namespaced') {
  class Built extends Construct {
    constructor(parent: Construct, id: string, props: CustomResourceProps<WidgetSpec>) {
      super(parent, id);
      build(this, props);
    }
  }
  return widgetKind({ scope }, Built);
}

function configMap(scope: Construct, id: string, props: object): ApiObject {
  return new ApiObject(scope, id, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: id }, ...props });
}

function reasonOf(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    if (error instanceof OperatorError) return `${error.reason}: ${error.message}`;
    throw error;
  }
  return 'nothing was thrown';
}

test('a construct that takes too long is stopped, also in an endless loop, and errors come through', () => {
  const late = (): Error => new Error('late');
  const endless = (): never => {
    for (;;);
  };
  expect(inTime(1_000, () => inTime(1_000, () => 'done', late), late)).toBe('done');
  expect(() => inTime(20, endless, late)).toThrow('late');
  expect(() => inTime(1_000, () => inTime(20, endless, () => new Error('inner')), late)).toThrow('inner');
  // As a process that is suspended: time passes, and nothing is computed.
  let calls = 0;
  const suspendedOnce = (): number => {
    if (calls++ === 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10_000);
    return calls;
  };
  expect(inTime(1_000, suspendedOnce, late)).toBe(2);
});

describe('A controller, with a construct that hangs', () => {
  const stopped = /was stopped, since it took longer than 0.1 s/;

  /** The construct hangs for a size of 0. */
  function hanging() {
    let [runs, now] = [0, 0];
    const kind = kindThat((_, { spec }) => {
      for (runs++; spec.size === 0;);
    });
    const renderer = new Renderer(kind, { render: synthesize }, 100, () => now);
    const live = { controlled: [], own: [], now: new Date(0), isFinal: true, isPaused: false };
    const noPolicy = {};
    const fault = (uid: string, { policy = noPolicy, generation = 1, namespace = 'shop', size = 0 } = {}) => {
      const { metadata, ...cr } = widget('web', { image: 'nginx', size });
      try {
        renderer.render({ ...cr, metadata: { ...metadata, namespace, uid, generation } }, { policy }, live);
      } catch (error) {
        return error as OperatorError;
      }
      return undefined;
    };
    /** Reports whether it ran: twice on a machine so busy that it looks suspended. */
    const hasRun = (): boolean => {
      const before = runs;
      runs = 0;
      return before > 0;
    };
    return { fault, hasRun, pass: (milliseconds: number) => void (now += milliseconds) };
  }

  test('is held up once for a custom resource, generation and policy', () => {
    const { fault, hasRun } = hanging();
    expect([fault('a')?.message, hasRun()]).toEqual([expect.stringMatching(stopped), true]);
    expect([fault('a')?.message, hasRun()]).toEqual([expect.stringMatching(stopped), false]);
    expect([fault('a', { policy: { other: {} } })?.reason, hasRun()]).toEqual(['RenderFailed', true]);
    expect([fault('a', { generation: 2 })?.reason, hasRun()]).toEqual(['RenderFailed', true]);
  });

  test('lets one namespace rest after several stops, longer each time, and renders for the others', () => {
    const { fault, hasRun, pass } = hanging();
    let generation = 0;
    const edited = () => fault(String(generation % 2), { generation: ++generation });
    for (let stop = 0; stop < 3; stop++) {
      expect(edited()?.message).toMatch(stopped);
      expect(fault('b', { namespace: 'other', size: stop + 1, generation: stop })).toBeUndefined();
    }
    hasRun();
    const rest = fault('c', { size: 1 });
    expect(rest?.message).toBe(
      "Widget shop/web isn't rendered: the construct Built was stopped 3 times in this namespace, and rests for 60 s; look for an endless loop, or a child process that hangs",
    );
    expect(rest).toMatchObject({ retry: 'backoff', retryAfterMilliseconds: 60_000 });
    expect(hasRun()).toBe(false);
    pass(60_000);
    expect(edited()?.message).toMatch(stopped);
    expect(edited()?.retryAfterMilliseconds).toBe(120_000);
    pass(1_300_000);
    expect([edited(), edited()].map((error) => error?.message)).toEqual(
      Array(2).fill(expect.stringMatching(stopped)),
    );
  });

  test('lets the construct rest when several namespaces were stopped in a row', () => {
    const { fault, hasRun, pass } = hanging();
    for (const namespace of ['a', 'b', 'c'])
      expect(fault(namespace, { namespace })?.message).toMatch(stopped);
    hasRun();
    expect(fault('d', { namespace: 'd', size: 1 })).toMatchObject({
      message: expect.stringContaining('stopped in 3 namespaces in a row, and rests for 60 s') as string,
      retryAfterMilliseconds: 60_000,
    });
    expect(hasRun()).toBe(false);
    pass(60_000);
    expect(fault('d', { namespace: 'd', size: 1 })).toBeUndefined();
    expect(fault('e', { namespace: 'e' })?.message).toMatch(stopped);
    expect(fault('d', { namespace: 'd', size: 2, generation: 2 })).toBeUndefined();
    for (const namespace of ['f', 'g', 'h'])
      expect(fault(namespace, { namespace })?.message).toMatch(stopped);
    pass(60_000);
    expect(fault('i', { namespace: 'i' })?.message).toMatch(stopped);
    expect(fault('d', { namespace: 'd', size: 3, generation: 3 })).toBeUndefined();
  });
});

test('objects carry the namespace and the labels of their custom resource', () => {
  const objects = render(widgetKind(), widget('web', { image: 'nginx', size: 2, ports: [{ port: 80 }] }));

  expect(objects).toMatchObject([
    { apiVersion: 'v1', kind: 'ConfigMap', data: { image: 'nginx', size: '2' } },
    { apiVersion: 'v1', kind: 'Service', spec: { ports: [{ port: 80 }] } },
  ]);
  for (const { metadata } of objects) {
    expect(metadata).toEqual({
      name: 'web',
      namespace: 'shop',
      labels: {
        app: 'web',
        'app.kubernetes.io/managed-by': 'reconstruct',
        'app.kubernetes.io/name': 'web',
        'demo.example.com/widget': 'web',
      },
    });
  }
});

test('an annotation that the controller would refuse is refused', () => {
  const cr = widget('web', { image: 'nginx' });
  const annotations = { 'reconstruct.kosmos.io/drift': 'wran' };
  const annotated = { ...cr, metadata: { ...cr.metadata, annotations } };
  expect(() => render(widgetKind(), annotated)).toThrow('"wran" is none of correct, warn, ignore');
});

test('the construct gets metadata, spec and API version only, and its changes stay its own', () => {
  const seen: unknown[] = [];
  const kind = kindThat((scope, props) => {
    seen.push(structuredClone(props));
    (props.spec as { image: string }).image = 'changed';
    configMap(scope, 'a', {});
  });
  const cr = { ...widget(), status: { ready: 1 }, metadata: { name: 'web', namespace: 'shop', uid: 'u' } };
  Object.freeze(cr.spec);

  render(kind, cr);

  // The first time, a construct is run twice.
  expect(seen).toHaveLength(2);
  expect(seen.slice(1)).toEqual([
    {
      apiVersion: kind.type.apiVersion,
      metadata: { name: 'web', namespace: 'shop' },
      spec: { image: 'nginx' },
    },
  ]);
  expect(cr.spec).toEqual({ image: 'nginx' });
});

test('the construct gets the spec with sorted keys, so that its order changes nothing', () => {
  const seen: string[] = [];
  const kind = kindThat((_, { spec }) => seen.push(JSON.stringify(spec)));
  render(
    kind,
    widget('web', {
      size: 1,
      settings: { b: '1', a: '2' },
      ports: [{ protocol: 'TCP', port: 1 }],
      image: 'a',
    }),
  );
  expect(seen.at(-1)).toBe(
    '{"image":"a","ports":[{"port":1,"protocol":"TCP"}],"settings":{"a":"2","b":"1"},"size":1}',
  );
});

test.each(['CDK8S_DISABLE_SORT', 'CDK8S_LEGACY_HASH', 'CDK8S_OUTDIR', 'CDK8S_RECORD_CONSTRUCT_METADATA'])(
  '%s changes nothing',
  (variable) => {
    const kind = kindThat((scope) => {
      new ApiObject(scope, 'generated-name', {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        data: { b: '1', a: '2' },
      });
    });
    const before = JSON.stringify(render(kind, widget()));
    vi.stubEnv(variable, 'true');
    const after = JSON.stringify(render(kind, widget()));
    vi.unstubAllEnvs();
    expect(after).toBe(before);
  },
);

test('children of a cluster-scoped custom resource may be in any namespace', () => {
  const kind = kindThat((scope) => {
    configMap(scope, 'a', { metadata: { name: 'a', namespace: 'one' } });
    configMap(scope, 'b', { metadata: { name: 'a', namespace: 'two' } });
  }, 'Cluster');
  const objects = render(kind, { ...widget(), metadata: { name: 'web' } });
  expect(objects.map(({ metadata }) => metadata.namespace)).toEqual(['one', 'two']);
});

test('what depends on what is noted, also through others and through what contains it, and none where nothing does', () => {
  const kind = kindThat((scope) => {
    const group = new Construct(scope, 'group');
    const [web, job, db] = ['web', 'job', 'db'].map((id) => configMap(scope, id, {}));
    for (const id of ['one', 'two']) configMap(group, id, {});
    job!.addDependency(db!);
    group.node.addDependency(job!);
    web!.node.addDependency(group);
  });
  const objects = render(kind, widget());
  const named = [...objects.dependencies!].map(([object, others]) => {
    expect(objects).toContain(object);
    return [object, ...others].map(({ metadata }) => metadata.name);
  });
  expect(objects.map(({ metadata }) => metadata.name)).toEqual(['db', 'job', 'one', 'two', 'web']);
  expect(named).toEqual([
    ['job', 'db'],
    ['one', 'db', 'job'],
    ['two', 'db', 'job'],
    ['web', 'db', 'job', 'one', 'two'],
  ]);
  const none = kindThat((scope) => configMap(scope, 'a', {}));
  expect(render(none, widget()).dependencies).toBeUndefined();
});

const REFUSALS: [what: string, build: Build, expected: string][] = [
  [
    'a type that is not declared',
    (scope) => new ApiObject(scope, 'x', { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'x' } }),
    "UndeclaredChild: Widget shop/web renders Secret shop/x, which kind Widget doesn't declare; add { apiVersion: 'v1', kind: 'Secret' } to its children",
  ],
  [
    'another version of a type that is declared',
    (scope) => new ApiObject(scope, 'x', { apiVersion: 'v2', kind: 'ConfigMap', metadata: { name: 'x' } }),
    'UndeclaredChild: Widget shop/web renders ConfigMap shop/x of v2, of which kind Widget declares v1; write that in the construct',
  ],
  [
    'one object twice',
    (scope) => {
      configMap(scope, 'a', { metadata: { name: 'same' } });
      configMap(scope, 'b', { metadata: { name: 'same' } });
    },
    'DuplicateChild: Widget shop/web renders ConfigMap shop/same twice; give the objects different names',
  ],
  [
    'a dependency in a circle',
    (scope) => {
      const [a, b] = [configMap(scope, 'a', {}), configMap(scope, 'b', {})];
      a.addDependency(b);
      b.addDependency(a);
    },
    "RenderFailed: Widget shop/web can't be rendered: Dependency cycle detected: shop--web/web/a => shop--web/web/b => shop--web/web/a",
  ],
  [
    'a dependency on what is rendered elsewhere',
    (scope) => {
      configMap(scope, 'a', {}).addDependency(configMap(new Chart(new App(), 'other'), 'b', {}));
    },
    "RenderFailed: Widget shop/web can't be rendered: shop--web/web/a depends on other/b, which is not rendered with this custom resource; give addDependency another construct of the same custom resource",
  ],
  [
    'a dependency on what is around it',
    (scope) => {
      configMap(scope, 'a', {}).node.addDependency(scope);
    },
    "RenderFailed: Widget shop/web can't be rendered: shop--web/web/a depends on shop--web/web, which contains it; give addDependency another construct",
  ],
  [
    'another namespace',
    (scope) => configMap(scope, 'a', { metadata: { name: 'a', namespace: 'other' } }),
    "ForeignNamespace: Widget shop/web renders ConfigMap other/a, which is in another namespace; leave that out, or declare it: { apiVersion: 'v1', kind: 'ConfigMap', namespaces: ['other'] } in the kind's children",
  ],
  [
    'a name that is too long',
    (scope) =>
      new ApiObject(scope, 'x', {
        ...{ apiVersion: 'v1', kind: 'ConfigMap' },
        metadata: { name: 'x'.repeat(254) },
      }),
    'NameTooLong: Widget shop/web renders ConfigMap shop/xx',
  ],
  [
    'a label that is too long',
    (scope) => configMap(scope, 'a', { metadata: { name: 'a', labels: { 'demo.io/long': 'y'.repeat(64) } } }),
    'NameTooLong: Widget shop/web renders ConfigMap shop/a, whose label demo.io/long has 64 characters, of which a label may have 63',
  ],
  ...['a/../../secrets/x', 'web/status', 'a%2fb', '.', '..'].map((name): (typeof REFUSALS)[number] => [
    `the name ${name}`,
    (scope) => configMap(scope, 'a', { metadata: { name } }),
    `InvalidName: Widget shop/web renders ConfigMap shop/${name}, whose name`,
  ]),
  [
    'an object without a name',
    (scope) => {
      configMap(scope, 'a', {}).addJsonPatch(JsonPatch.remove('/metadata/name'));
    },
    'RenderFailed: Widget shop/web renders an object without apiVersion, kind or metadata.name',
  ],
  [
    'another namespace, with a controller there',
    (scope) => {
      const ownerReferences = [{ apiVersion: 'v1', kind: 'Node', name: 'n', uid: 'x', controller: true }];
      configMap(scope, 'a', { metadata: { name: 'a', namespace: 'other', ownerReferences } });
    },
    'ForeignNamespace: ',
  ],
  ...[{ uid: 'x' }, { resourceVersion: '1' }].map((given): (typeof REFUSALS)[number] => [
    `a metadata.${Object.keys(given)[0]}`,
    (scope) => configMap(scope, 'a', { metadata: { name: 'a', ...given } }),
    `RenderFailed: Widget shop/web renders ConfigMap shop/a with metadata.${Object.keys(given)[0]}, which the API server sets; leave it out`,
  ]),
  [
    'another controller',
    (scope) => {
      const owner = { apiVersion: 'v1', kind: 'Node', name: 'n', uid: 'x' };
      const ownerReferences = [owner, { ...owner, controller: true }];
      configMap(scope, 'a', { metadata: { name: 'a', ownerReferences } });
    },
    'RenderFailed: Widget shop/web renders ConfigMap shop/a with Node n as its controller in metadata.ownerReferences, where the operator adds Widget shop/web; leave that out',
  ],
  [
    'a value that is no JSON',
    (scope) => configMap(scope, 'a', { data: { n: NaN } }),
    "RenderFailed: Widget shop/web can't be rendered: data.n is NaN, which JSON can't say",
  ],
  [
    'an integer that JavaScript rounds',
    (scope) => configMap(scope, 'a', { data: { n: 2 ** 53 } }),
    'data.n is 9007199254740992: JavaScript rounds integers beyond 2^53 - 1; give a smaller one, or text',
  ],
  [
    'an instance of a class',
    (scope) => configMap(scope, 'a', { data: { at: new Date(0) } }),
    "can't render non-simple object of type 'Date'",
  ],
  [
    'null in a list',
    (scope) => configMap(scope, 'a', { data: [null] }),
    "RenderFailed: Widget shop/web can't be rendered: data[0] is undefined, which JSON can't say",
  ],
  [
    'a chart inside of the chart',
    (scope) => configMap(new Chart(scope, 'inner'), 'a', {}),
    'the construct makes a Chart of its own, whose objects would be lost',
  ],
  [
    'a failed validation',
    (scope) => {
      scope.node.addValidation({ validate: () => ['the moon is full'] });
    },
    'the moon is full',
  ],
];

test.each(['a/configmaps/b', '..', 'a%2fb'])('a child in a namespace called %s is refused', (namespace) => {
  const meta = { name: 'a', namespace };
  const kind = kindThat((scope) => void configMap(scope, 'a', { metadata: meta }), 'Cluster');
  const { metadata, ...cr } = widget('web', { image: 'nginx' });
  const { namespace: _, ...cluster } = metadata;
  expect(reasonOf(() => render(kind, { ...cr, metadata: cluster }))).toMatch(/^InvalidName: /);
});

test('a namespace that is too long is reported with the rule for the CRD', () => {
  const name = 'n'.repeat(56);
  const metadata = { name: 'a', namespace: `preview-${name}` };
  const kind = kindThat((scope) => void configMap(scope, 'a', { metadata }), 'Cluster');
  const { metadata: _, ...cr } = widget(name, { image: 'nginx' });
  const message = reasonOf(() => render(kind, { ...cr, metadata: { name } }));
  expect(message).toMatch(/^NameTooLong: .*whose namespace has 64 characters, .*size\(\) <= 55'/);
});

/** What is told of a custom resource of that name. */
function toldOf(name: string, build: Build): string {
  return reasonOf(() => render(kindThat(build), { ...widget(), metadata: { name, namespace: 'shop' } }));
}

test.each<[what: string, length: number, most: number, kind: string, child: (name: string) => string]>([
  ['with an ending', 59, 58, 'Service', (name) => `${name}-live`],
  ['twice', 32, 31, 'Service', (name) => `${name}-${name}`],
  ['with labels that are shorter', 250, 63, 'ConfigMap', (name) => `${name}-live`],
])(
  'a name that is too long is reported with the rule for the CRD, and its number: %s',
  (_, length, most, kind, child) => {
    const message = toldOf('n'.repeat(length - 1) + '0', (scope, { metadata }) => {
      new ApiObject(scope, 'x', { apiVersion: 'v1', kind, metadata: { name: child(metadata.name) } });
    });
    const rule = `[{ rule: 'self.metadata.name.size() <= ${most}' }]`;
    expect(message).toMatch(/^NameTooLong: .*make it shorter in the construct, or let the CRD refuse it, /);
    expect(message).toContain(`with rules: ${rule} in defineCrd`);
  },
);

test.each([
  ['not made of its name', 'x'.repeat(254)],
  ['too long without its name', `web-${'x'.repeat(253)}`],
])('no rule is reported where a name is %s', (_, name) => {
  const message = toldOf('web', (scope) => configMap(scope, 'a', { metadata: { name } }));
  expect(message).toMatch(/of which a ConfigMap may have 253; make it shorter in the construct$/);
});

test.each(REFUSALS)('%s is refused', (_, build, expected) => {
  expect(reasonOf(() => render(kindThat(build), widget()))).toContain(expected);
});

test('a key named __proto__ in the custom resource is refused as a mistake in it, not lost', () => {
  const spec = JSON.parse('{"image":"nginx","settings":{"__proto__":"x"}}') as object;
  expect(reasonOf(() => render(widgetKind(), widget('web', spec)))).toBe(
    "Invalid: spec.settings has a key named __proto__, which can't be rendered: give it another name",
  );
});

test('keys that every object of JavaScript has are keys like any other, in order', () => {
  const odd = { 'constructor-a': 'x', constructor: 'x', hasOwnProperty: 'x', toString: 'x', valueOf: 'x' };
  const given = { ...odd, toJSON: 'x', then: 'x', resolve: 'x', produce: 'x', value: 'x', length: 'x' };
  const kind = kindThat((scope, { spec }) => {
    const { settings } = spec as unknown as { settings: Record<string, string> };
    const at = { nested: [{ of: settings }] };
    configMap(scope, 'a', { metadata: { name: 'a', labels: settings, annotations: settings }, data: at });
  });
  const [made] = render(kind, widget('web', { image: 'nginx', settings: given }));
  expect(made).toMatchObject({
    metadata: { labels: given, annotations: given },
    data: { nested: [{ of: given }] },
  });
  const keys = Object.keys(made?.metadata.annotations ?? {});
  expect(keys).toEqual([...keys].sort());
});

test.each<[what: string, given: object, rendered: object]>([
  [
    'a Secret is encoded, beside what was encoded before',
    { type: 'Opaque', stringData: { b: 'grün' }, data: { a: 'MQ==' } },
    { data: { a: 'MQ==', b: 'Z3LDvG4=' } },
  ],
  [
    'a Secret wins over what is encoded under the same key, as in the API server',
    { stringData: { a: '2' }, data: { a: 'MQ==' } },
    { data: { a: 'Mg==' } },
  ],
  ['a Secret that is no map is left alone', { stringData: 'a' }, { stringData: 'a' }],
  ['another kind is left alone', { kind: 'ConfigMap', stringData: { a: '1' } }, { stringData: { a: '1' } }],
])('the text of %s', (_, given, rendered) => {
  const kind = kindThat((scope) => configMap(scope, 'a', { kind: 'Secret', ...given }));
  const children = [...kind.children, resourceType({ apiVersion: 'v1', kind: 'Secret' })];
  const [made] = render({ ...kind, children }, widget());
  expect([made?.stringData, made?.data]).toEqual([
    (rendered as AnyObject).stringData,
    (rendered as AnyObject).data,
  ]);
});

test('a UID and a version that are empty are none, as for the API server', () => {
  const metadata = { name: 'a', uid: '', resourceVersion: '' };
  const [made] = render(
    kindThat((scope) => configMap(scope, 'a', { metadata })),
    widget(),
  );
  expect(made?.metadata).toMatchObject(metadata);
});

test('an OperatorError of the construct comes through, from wherever it is thrown', () => {
  const refusal = new OperatorError({ reason: 'NoSuchThing', message: 'There is no such thing.' });
  const direct = kindThat(() => {
    throw refusal;
  });
  const wrapped = kindThat(() => {
    throw new Error('something around it', { cause: refusal });
  });
  const lazy = kindThat((scope) => {
    const produce = (): never => {
      throw refusal;
    };
    configMap(scope, 'a', { data: Lazy.any({ produce }) as unknown });
  });
  for (const kind of [direct, wrapped, lazy]) {
    expect(reasonOf(() => render(kind, widget()))).toBe('NoSuchThing: There is no such thing.');
  }
});

test('a construct that is not deterministic is refused, with the field and both values, each time', () => {
  const kind = kindThat((scope) => configMap(scope, 'a', { data: { at: new Date().toISOString() } }));

  for (const name of ['web', 'other'])
    expect(reasonOf(() => render(kind, widget(name)))).toMatch(
      new RegExp(
        `^NotDeterministic: Widget shop/${name} renders ConfigMap shop/a with "20.*Z" at \\.data\\.at, and the next time with "20.*Z"\\. A construct has`,
      ),
    );
});
