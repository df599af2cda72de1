import { inspect } from 'node:util';
import { ApiObject, JsonPatch, Lazy } from 'cdk8s';
import { Construct } from 'constructs';
import { expect, it } from 'vitest';
import type { Found, Lookup, Query } from '../../src/contract/controller.js';
import { OperatorError } from '../../src/contract/error.js';
import type { AnyObject, CustomResource } from '../../src/contract/object.js';
import { keepUnreadable } from '../../src/values/projections.js';
import { checksumAnnotations, ReferenceResolver } from '../../src/author/references.js';
import type { AnyReference, ReferenceProps } from '../../src/author/references.js';
import { resourceType } from '../../src/contract/resource.js';
import { render, Renderer } from '../../src/render/renderer.js';
import { synthesize } from '../../src/render/synthesize.js';
import { withoutDigests } from '../../src/testing/compare.js';

const WIDGET = resourceType({ apiVersion: 'demo.io/v1', kind: 'Widget' });
type Spec = Readonly<Record<string, string>>;
const cr = (name: string, spec: Spec = {}, namespace: string | undefined = 'shop'): CustomResource => ({
  ...{ apiVersion: 'demo.io/v1', kind: 'Widget', spec },
  metadata: { name, uid: name, ...(namespace && { namespace }) },
});
const secret = { apiVersion: 'v1', kind: 'Secret', data: true } as const;

/** Resolves one reference, and notes what is asked for. */
function resolved(
  props: ReferenceProps<never>,
  one: CustomResource,
  type = WIDGET,
  found: Found = { objects: [] },
) {
  const asked: Query[] = [];
  const find = (_: Lookup, query: Query) => {
    asked.push(query);
    return found;
  };
  let [message, reason] = ['', ''];
  try {
    new ReferenceResolver(type, { db: props }).resolve(one, find);
  } catch (error) {
    ({ message, reason } = error as OperatorError);
  }
  return { asked, message, ...(reason && { reason }) };
}

it('too much, and what can not be read, are stalls that say so', () => {
  const byLabels: ReferenceProps<never> = { ...secret, labels: () => ({ app: 'web' }) };
  const why = 'it has more than 1,000 objects';
  expect(resolved(byLabels, cr('web'), WIDGET, { why, isTooMuch: true })).toMatchObject({
    reason: 'ReferenceTooLarge',
    message:
      'Widget shop/web refers to Secret shop/app=web (references.db), which is too much: it has more than 1,000 objects; refer to fewer objects, or to smaller ones',
  });
  const error = new OperatorError({ reason: 'TooDeep', message: 'Secret shop/db is too deep' });
  const objects = [keepUnreadable({ ...secret, metadata: { name: 'db', namespace: 'shop' } }, error)];
  expect(resolved(byLabels, cr('web'), WIDGET, { objects })).toMatchObject({ reason: 'TooDeep' });
});

it('an empty namespace is that of the custom resource, and never all', () => {
  const props = { ...secret, name: () => 'db', namespace: () => '' };
  expect(resolved(props, cr('web')).asked).toEqual([{ namespace: 'shop', name: 'db' }]);
  const cluster = resourceType({ ...WIDGET, namespaced: false });
  const { asked, message } = resolved(props, cr('web', {}, ''), cluster);
  expect(asked).toEqual([]);
  expect(message).toContain('its namespace is not given');
});

it.each<[what: string, props: Partial<AnyReference>, message: string]>([
  ['name', { name: () => 'a=b' }, 'no object is called "a=b"'],
  ['name', { name: () => '..' }, 'no object is called ".."'],
  ['name', { name: () => ({ a: 1 }) as never }, 'its name is no text'],
  ['name', { name: () => ['a'] as never }, 'its name is no text'],
  ['name', { name: () => 'a'.repeat(254) }, 'no object is called "aaa'],
  [
    'selector',
    { labels: () => Object.fromEntries([...Array(400).keys()].map((n) => [`label-${n}`, 'x'])) },
    'its labels are more than a request can have',
  ],
  ['namespace', { name: () => 'db', namespace: () => 'A b' }, 'no namespace is called "A b"'],
  ['label', { labels: () => ({ tier: 'a b' }) }, 'no object has the label tier=a b'],
  ['namespace', { labels: () => ({ a: 'b' }), namespace: () => '*' }, 'no namespace is called "*"'],
  [
    'expression',
    { selector: () => ({ matchExpressions: [{ key: 'tier', operator: 'In', values: ['a b'] }] }) },
    'no object has the label tier=a b',
  ],
  [
    'operator',
    { selector: () => ({ matchExpressions: [{ key: 'tier', operator: 'Like' as never, values: ['a'] }] }) },
    'Like is no operator; write In, NotIn, Exists or DoesNotExist',
  ],
  [
    'expression without values',
    { selector: () => ({ matchExpressions: [{ key: 'tier', operator: 'NotIn' }] }) },
    'NotIn takes values',
  ],
  ['empty selector', { selector: () => ({}) }, 'no labels would select every object'],
  [
    'misspelt selector',
    { data: false, selector: () => ({ matchLabel: { a: 'b' } }) as never },
    'no labels would select every object',
  ],
  [
    'empty selector',
    { labels: () => ({}) },
    "Widget shop/web refers to Secret shop/{} (references.db), which can't be: no labels would select every object",
  ],
])('a %s that nothing can have is not asked for: %j', (_, props, message) => {
  const found = resolved({ ...secret, ...props } as ReferenceProps<never>, cr('web'));
  expect(found.asked).toEqual([]);
  expect(found.message).toContain(message);
});

it('what is found in a namespace is refused, where the type is declared without', () => {
  const props = { apiVersion: 'x.io/v1', kind: 'Key', namespaced: false, name: () => 'db' } as const;
  const references = new ReferenceResolver(WIDGET, { db: props });
  const find = () => ({ objects: [{ ...props, metadata: { namespace: 'other', name: 'db' } }] });
  expect(() => references.resolve(cr('web'), find as never)).toThrow(
    'Widget shop/web refers to Key db (references.db), and Key other/db was found, which is in a namespace: leave namespaced: false out of the reference',
  );
});

it('names, selectors, and all of a type are lists, in the namespace that the author or the user chose', () => {
  const object = (name: string, namespace = 'shop'): AnyObject => ({
    ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace } },
  });
  const config = { apiVersion: 'v1', kind: 'ConfigMap' };
  const asked: Query[] = [];
  const resolve = (props: ReferenceProps<never>): unknown => {
    const find = (_: Lookup, query: Query): Found => {
      asked.push(query);
      const { name = 'any', namespace = '' } = query;
      return { objects: name === 'none' ? [] : [object(name, namespace === '*' ? 'far' : namespace)] };
    };
    const found = new ReferenceResolver(WIDGET, { all: props }).resolve(cr('web'), find)?.all;
    return [found].flat().map((one) => one && `${one.metadata.namespace ?? ''}/${one.metadata.name}`);
  };
  const names = (...all: string[]) => ({ ...config, names: () => all });
  expect(resolve(names('b', 'a', '', 'b'))).toEqual(['shop/b', 'shop/a']);
  expect(resolve({ ...names('none', 'a'), optional: true })).toEqual(['shop/a']);
  expect(() => resolve(names('a', 'none'))).toThrow(
    /ConfigMap shop\/none \(references\.all\), which isn't there/,
  );
  expect(resolve({ ...config, names: () => undefined })).toEqual([]);
  const many = [...Array(101).keys()].map((n) => `a-${n}`);
  expect(resolve(names(...many.slice(1)))).toHaveLength(100);
  expect(() => resolve(names(...many))).toThrow(
    'Widget shop/web refers to 101 objects by name (references.all), of which each is watched; name at most 100',
  );
  asked.length = 0;
  const operator = 'In' as const;
  const selector = () => ({
    matchLabels: { b: 'c' },
    matchExpressions: [{ key: 'a', operator, values: ['y', 'x'] }],
  });
  expect(resolve({ ...config, selector, namespace: 'kube-system' })).toEqual(['kube-system/any']);
  expect(resolve({ ...config, all: true, namespace: '*' })).toEqual(['far/any']);
  expect(resolve({ ...config, selector: () => undefined })).toEqual([]);
  expect(resolve({ ...config, selector: () => ({}) })).toEqual(['shop/any']);
  // No grant is asked for: no user chooses the namespace.
  expect(asked).toEqual([
    { namespace: 'kube-system', selector: 'a in (x,y),b=c' },
    { namespace: '*' },
    { namespace: 'shop' },
  ]);
});

it('an empty name is none', () => {
  expect(resolved({ ...secret, name: () => '' }, cr('web'))).toEqual({ asked: [], message: '' });
});

it('nothing of a Secret but its checksum is kept, unless its data is asked for', () => {
  const annotations = { 'kapp.k14s.io/original': '{"data":{"password":"c2VjcmV0"}}' };
  const live = { ...secret, data: { password: 'c2VjcmV0' }, metadata: { name: 'db', annotations } };
  const kept = (data: boolean) => {
    const props = { apiVersion: 'v1', kind: 'Secret', name: () => 'db', data };
    return JSON.stringify(new ReferenceResolver(WIDGET, { db: props }).lookups[0]?.keep(live));
  };
  expect(kept(true)).toContain('c2VjcmV0');
  expect(kept(false)).not.toContain('c2VjcmV0');
});

it('the checksum of a Secret follows its content and its UID, and no one without that can compute it', () => {
  const props = { apiVersion: 'v1', kind: 'Secret', name: () => 'db' } as const;
  const of = (password: string, uid?: string, namespace = 'shop') => {
    const metadata = { name: 'db', namespace, ...(uid !== undefined && { uid }) };
    const kept = new ReferenceResolver(WIDGET, { db: props }).lookups[0]!.keep({
      ...props,
      metadata,
      data: { password },
    });
    const annotations = checksumAnnotations({ db: kept });
    return { annotations, both: [kept.checksum, annotations['checksum/db']] };
  };
  const [one] = [of('a', 'u')];
  expect(one.both.map(String)).toEqual([
    expect.stringMatching(/^keyed-[0-9a-f]{32}$/),
    expect.stringMatching(/^keyed-[0-9a-f]{32}$/),
  ]);
  expect(of('a', 'u', 'other')).toEqual(one);
  for (const other of [of('b', 'u'), of('a', 'v')]) expect(other.annotations).not.toEqual(one.annotations);
  expect(of('a').both).toEqual(['unknown-without-a-cluster', 'unknown-without-a-cluster']);
  expect(withoutDigests(JSON.stringify([one, of('a')]), [])).not.toMatch(/keyed|unknown/);
  const plain = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' } };
  expect(checksumAnnotations({ plain })['checksum/plain']).toMatch(/^[0-9a-f]{32}$/);
});

it('a construct cannot change what others refer to as well', () => {
  class Widget extends Construct {
    constructor(scope: Construct, id: string, { spec, references }: { spec: Spec; references: unknown }) {
      super(scope, id);
      const { data } = (references as { shared: { data: Record<string, string> } }).shared;
      if (spec.token !== undefined) data.token = spec.token;
      new ApiObject(this, 'Config', {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: id },
      }).addJsonPatch();
    }
  }
  const CONFIG_MAP = resourceType({ apiVersion: 'v1', kind: 'ConfigMap' });
  const references = new ReferenceResolver(WIDGET, { shared: { ...CONFIG_MAP, name: () => 'shared' } });
  const metadata = { namespace: 'shop', name: 'shared', uid: 's', resourceVersion: '1' };
  const stored = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { color: 'red' } };
  const kept = references.lookups[0]?.keep(stored) as AnyObject;
  const kind = { type: WIDGET, construct: Widget as never, children: [CONFIG_MAP], references };
  const made = (one: CustomResource) => {
    const found = references.resolve(one, () => ({ objects: [kept] }));
    const live = { controlled: [], own: [], now: new Date(0), isFinal: true, isPaused: false };
    return new Renderer(kind, { render: synthesize }).render(one, { references: found! }, live).rendered;
  };
  expect(made(cr('b'))).toHaveLength(1);
  expect(() => made(cr('a', { token: 'of a' }))).toThrow(/not extensible/);
});

it.each([undefined, { tls: { a: "'secret'" } }, { tls: [{ a: "'secret'" }] }])(
  'a checksum of %j is refused as a mistake of its author, without its values',
  (given) => {
    expect(() => checksumAnnotations(given as never)).toThrow(
      /^checksumAnnotations(: tls)?: isn't what the props have; write checksumAnnotations\(references\)[^']*$/,
    );
  },
);
const parses = (text: string): unknown => JSON.parse(text) as unknown;
const HIDDEN = 'hunter2 of prod';
const aConfigMap = (scope: Construct, data: unknown): ApiObject =>
  new ApiObject(scope, 'a', { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' }, data });

it.each<[what: string, make: (text: string, scope: Construct) => unknown, said: string]>([
  [
    'a parser',
    parses,
    "can't be rendered: SyntaxError, whose text is not shown, since Secrets were read (at test/",
  ],
  [
    'text',
    (text) => {
      // eslint-disable-next-line @typescript-eslint/only-throw-error -- authors do
      throw text;
    },
    "can't be rendered: a string, whose text",
  ],
  [
    'a cause',
    (text) => {
      throw new Error('no', { cause: new RangeError(text) });
    },
    "can't be rendered: Error, whose text",
  ],
  [
    'several lines',
    (text) => {
      throw new Error(`${text}\n    at ${text} (/${text}/kind.mjs:1:1)`);
    },
    'Error, whose text is not shown, since Secrets were read (at test/',
  ],
  [
    'a refusal of its own',
    (text) => {
      throw new OperatorError({ reason: 'BadUrl', message: text, retry: 'backoff' });
    },
    'BadUrl, whose text is not shown',
  ],
  [
    'a lazy value',
    (text, scope) => aConfigMap(scope, Lazy.any({ produce: () => parses(text) }) as unknown),
    'Error, whose text is not shown, since Secrets were read (at test/',
  ],
  ['what no JSON says', (text, scope) => aConfigMap(scope, { [text]: NaN }), 'Error, whose text'],
  [
    'what is not deterministic',
    (text, scope) => aConfigMap(scope, { at: text + String(Math.random()) }),
    'with a value that is not shown here at .data.at, and the next time with a value that is not shown here',
  ],
  [
    'an object without a name',
    (text, scope) => {
      // Before the labels, and so among what is said first.
      const annotated = JsonPatch.add('/metadata/annotations', { text });
      aConfigMap(scope, {}).addJsonPatch(annotated, JsonPatch.remove('/metadata/name'));
    },
    'without apiVersion, kind or metadata.name',
  ],
])('of %s that a Secret makes a construct throw, type and place alone are said', (_, make, said) => {
  class Reads extends Construct {
    constructor(scope: Construct, id: string, { references }: { references: unknown }) {
      super(scope, id);
      const { data } = (references as { db: { data: Record<string, string> } }).db;
      make(Buffer.from(data.password ?? '', 'base64').toString(), this);
    }
  }
  const CONFIG_MAP = resourceType({ apiVersion: 'v1', kind: 'ConfigMap' });
  const references = new ReferenceResolver(WIDGET, { db: { ...secret, name: () => 'db' } });
  const stored = {
    ...secret,
    metadata: { namespace: 'shop', name: 'db' },
    data: { password: Buffer.from(HIDDEN).toString('base64') },
  };
  const kept = references.lookups[0]?.keep(stored) as AnyObject;
  const kind = { type: WIDGET, construct: Reads as never, children: [CONFIG_MAP], references };
  const found = references.resolve(cr('web'), () => ({ objects: [kept] }))!;
  const thrown = thrownBy(() => render(kind, cr('web'), { references: found }));
  expect(thrown.message).toContain(said);
  expect(inspect(thrown, { depth: 9 })).not.toContain('hunter2');
});

function thrownBy(make: () => unknown): Error {
  try {
    make();
  } catch (error) {
    return error as Error;
  }
  throw new Error('nothing was thrown');
}
