import { isDeepStrictEqual } from 'node:util';
import { OperatorError } from '../../contract/error.js';
import type { Kind } from '../../contract/kind.js';
import { isHashAnnotation } from '../../contract/names.js';
import type { AnyObject, CustomResource } from '../../contract/object.js';
import { groupKind } from '../../contract/resource.js';
import type { FieldsV1 } from '../../engine/managed-fields.js';
import { render } from '../../synth/render.js';
import { policyFor } from './stand.js';
import type { Surroundings } from './stand.js';

/** Objects without what makes them these ones, by `<kind> <name>`. */
export type Normal = Readonly<Record<string, unknown>>;

/** A custom resource, as far as its objects speak of it. */
interface Named {
  readonly name: string;
  readonly namespace: string;
  /** The other namespace of its trial, for what it shares. @default - there is none */
  readonly elsewhere?: string;
  readonly uid: string;
  /** See `digestsOf`. @default - none */
  readonly digests?: readonly string[];
}

interface Meta {
  readonly name: string;
  readonly uid?: string;
  readonly labels?: Json;
  readonly annotations?: Json;
  readonly finalizers?: unknown;
  readonly ownerReferences?: unknown;
  readonly managedFields?: readonly OwnEntry[];
}

interface OwnEntry {
  readonly manager: string;
  readonly operation: string;
  readonly subresource?: string;
  readonly fieldsV1: FieldsV1;
}

type Json = Readonly<Record<string, unknown>>;

/**
 * What the operator says of an object: its entries in `managedFields`, each with the hash of what was applied. What was handed
 * over to others has an entry without.
 */
export function ownEntries({ metadata }: AnyObject): readonly OwnEntry[] {
  const { managedFields = [] } = metadata as Meta;
  return managedFields.filter(({ operation, subresource, fieldsV1 }) => {
    if (operation !== 'Apply' || subresource !== undefined) return false;
    const annotations = Object.keys(fieldsV1['f:metadata']?.['f:annotations'] ?? {});
    return annotations.some((segment) => isHashAnnotation(segment.slice(2)));
  });
}

/** What the cluster chooses for each object anew, where nobody says it. */
const CHOSEN = new Set([
  ...['clusterIP', 'clusterIPs', 'nodePort', 'healthCheckNodePort', 'volumeName'],
  ...['batch.kubernetes.io/controller-uid', 'controller-uid'],
]);
const BY_CLUSTER = new Set(['deployment.kubernetes.io/revision', 'deprecated.daemonset.template.generation']);
/** Not part of what is asked for. */
const NOT_COMPARED = new Set(['metadata', 'status']);

/**
 * Objects as two custom resources of the same spec have them in common: without identities, status and what the cluster
 * chooses, and with the fields that each applying manager owns.
 */
export function normal(objects: readonly AnyObject[], cr: Named): Normal {
  const { digests = [] } = cr;
  const anybodys = (text: string): string =>
    text
      .replaceAll(cr.uid, '<uid>')
      .replaceAll(cr.elsewhere ?? cr.namespace, cr.elsewhere === undefined ? '<namespace>' : '<elsewhere>')
      .replaceAll(cr.namespace, '<namespace>')
      .replaceAll(cr.name, '<name>');
  const entries = objects.map((object) => {
    const { namespace, name, uid = ' ' } = object.metadata;
    const text = anybodys(
      withoutDigests(JSON.stringify(comparable(object)), digests).replaceAll(uid, '<own uid>'),
    );
    const place = namespace === cr.elsewhere && namespace !== undefined ? '<elsewhere>/' : '';
    return [`${groupKind(object)} ${place}${anybodys(name)}`, JSON.parse(text) as unknown] as const;
  });
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}

function comparable(object: AnyObject): Json {
  const { labels = {}, annotations = {}, finalizers, ownerReferences } = object.metadata as Meta;
  const applied = ownEntries(object);
  const owned = JSON.stringify(applied.map(({ fieldsV1 }) => fieldsV1));
  const content = Object.entries(object).filter(([key]) => !NOT_COMPARED.has(key));
  const kept = Object.entries(annotations).filter(([key]) => !isHashAnnotation(key) && !BY_CLUSTER.has(key));
  return {
    ...(withoutChosen(Object.fromEntries(content), owned, '') as Json),
    metadata: { labels, annotations: Object.fromEntries(kept), finalizers, ownerReferences },
    owned: applied.map(({ manager, fieldsV1 }) => ({ manager, fieldsV1 })),
  };
}

/**
 * A value that nobody has applied, under a key that the cluster fills, is told as chosen.
 * @param owned everything that was applied, by whichever manager
 */
function withoutChosen(value: unknown, owned: string, key: string): unknown {
  const isOurs = owned.includes(`"f:${key}"`);
  if (CHOSEN.has(key) && !isOurs) return 'chosen';
  if (key === 'replicas' && !isOurs && typeof value === 'number') return 'chosen';
  if (Array.isArray(value)) return value.map((item) => withoutChosen(item, owned, ''));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, withoutChosen(member, owned, name)]),
  );
}

/** Where two states differ, in words: at most three lines. Empty where they don't. */
export function differences(expected: unknown, found: unknown): string[] {
  return differing(expected, found)
    .slice(0, 3)
    .map(({ text }) => text);
}

/** A place where two values differ. */
interface Difference {
  readonly text: string;
  readonly expected: unknown;
  readonly found: unknown;
}

export function differing(expected: unknown, found: unknown): Difference[] {
  const places: Difference[] = [];
  walk(expected, found, '', places);
  return places;
}

function walk(expected: unknown, found: unknown, path: string, places: Difference[]): void {
  if (JSON.stringify(expected) === JSON.stringify(found)) return;
  if (isMap(expected) && isMap(found)) {
    const keys = new Set([...Object.keys(expected), ...Object.keys(found)]);
    const last = [...keys].filter((key) => key === 'owned');
    for (const key of [...[...keys].filter((one) => one !== 'owned'), ...last])
      // Who owns what differs with the values, and is told only where these don't.
      if (key !== 'owned' || places.length === 0)
        walk(expected[key], found[key], path === '' ? key : `${path}.${key}`, places);
    return;
  }
  places.push({ text: `${path} is ${shown(found)} instead of ${shown(expected)}`, expected, found });
}

export function isMap(value: unknown): value is Json {
  return typeof value === 'object' && value !== null;
}

function shown(value: unknown): string {
  if (value === undefined) return 'absent';
  const text = JSON.stringify(value);
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}

/** A field of an object: names of members, and `{...}` for an item of a list, by its keys. */
export type Steps = readonly (string | Readonly<Record<string, unknown>>)[];

/** The fields at the ends of an entry of `managedFields`; the keys that name an item aren't among them. */
export function leavesOf(fields: FieldsV1, path: Steps = []): Steps[] {
  const at = path.at(-1);
  return Object.entries(fields).flatMap(([segment, child]) => {
    if (segment === '.' || segment.startsWith('v:') || segment.startsWith('i:')) return [];
    const name = segment.slice(2);
    if (segment.startsWith('k:')) return leavesOf(child, [...path, JSON.parse(name) as Json]);
    if (typeof at === 'object' && Object.hasOwn(at, name)) return [];
    const inner = Object.keys(child).filter((key) => key !== '.');
    return inner.length === 0 ? [[...path, name]] : leavesOf(child, [...path, name]);
  });
}

/** `spec.containers[name=web].image`. */
export function describeSteps(steps: Steps): string {
  return steps
    .map((step, index) => {
      if (typeof step === 'string') return index === 0 ? step : `.${step}`;
      return `[${Object.entries(step)
        .map(([key, value]) => `${key}=${String(value)}`)
        .join()}]`;
    })
    .join('');
}

export function valueAt(value: unknown, [step, ...rest]: Steps): unknown {
  if (step === undefined || value === undefined || value === null) return value;
  if (typeof step === 'string') return valueAt((value as Json)[step], rest);
  return valueAt(
    (value as readonly Json[]).find((item) => isItem(item, step)),
    rest,
  );
}

/** The same with another value there; with undefined, without it. */
export function withValueAt(value: unknown, [step, ...rest]: Steps, put: unknown): unknown {
  if (step === undefined) return put;
  if (typeof step === 'object') {
    const list = value as readonly Json[];
    return list.map((item) => (isItem(item, step) ? withValueAt(item, rest, put) : item));
  }
  const { [step]: old, ...others } = value as Json;
  const inner = withValueAt(old, rest, put);
  return inner === undefined ? others : { ...others, [step]: inner };
}

function isItem(item: Json, keys: Json): boolean {
  return Object.entries(keys).every(([key, value]) => isDeepStrictEqual(item[key], value));
}

/** As long and as random as a hash is. */
const DIGEST = /^[\w+/=:-]{6,}$/;

/**
 * Texts in the objects of a custom resource that are made of its name in a way that can't be undone, such as the hash of a
 * file that has it in it: what differs under another name of the same length, beside the name itself.
 */
export function digestsOf(
  made: (name: string) => readonly AnyObject[],
  name: string,
  objects = made(name),
): readonly string[] {
  const other = `z${name.slice(1)}` === name ? `y${name.slice(1)}` : `z${name.slice(1)}`;
  const found: string[] = [];
  compare(objects, made(other), (text, otherText) => {
    const isName = text.replaceAll(name, other) === otherText;
    if (!isName && text.length === otherText.length && DIGEST.test(text)) found.push(text);
  });
  return found;
}

/** Of what a custom resource in the cluster is rendered to now. */
export function digestsOfLive(kind: Kind, cr: CustomResource, around: Surroundings): readonly string[] {
  if (!('each' in kind.rendering)) return [];
  const { each } = kind.rendering;
  const policy = policyFor(kind, around);
  const made = (name: string): AnyObject[] =>
    render(each, { ...cr, metadata: { ...cr.metadata, name } }, policy);
  try {
    return digestsOf(made, cr.metadata.name);
  } catch (error) {
    // It is told in the status.
    if (error instanceof OperatorError) return [];
    throw error;
  }
}

/** In place of each of them, the same word. */
export function withoutDigests(text: string, digests: readonly string[]): string {
  return digests.reduce((left, digest) => left.replaceAll(digest, '<digest>'), text);
}

function compare(one: unknown, two: unknown, told: (one: string, two: string) => void): void {
  if (typeof one === 'string' && typeof two === 'string') {
    if (one !== two) told(one, two);
    return;
  }
  if (typeof one !== 'object' || typeof two !== 'object' || !one || !two) return;
  for (const [key, value] of Object.entries(one)) compare(value, (two as Record<string, unknown>)[key], told);
}
