import { isUtf8 } from 'node:buffer';
import { gunzipSync } from 'node:zlib';
import { COMPOSED_ANNOTATION, isHashAnnotation, isRecordAnnotation } from '../contract/names.js';
import { SECRET_CHECKSUM } from '../values/json.js';
import type { AnyObject, ManagedFieldsEntry } from '../contract/object.js';
import { groupKind } from '../contract/resource.js';
import { differences as deepDifferences, showValue } from '../values/path.js';
import { managedFieldsOf } from '../values/projections.js';

/** Returns what the operator's managers have applied; an entry without its hash was handed over to others. */
export function ownEntries(object: AnyObject): readonly ManagedFieldsEntry[] {
  return managedFieldsOf(object).filter(({ operation, subresource, fieldsV1 }) => {
    const annotations = Object.keys(fieldsV1?.['f:metadata']?.['f:annotations'] ?? {});
    const isHashed = annotations.some((segment) => isHashAnnotation(segment.slice(2)));
    return operation === 'Apply' && subresource === undefined && isHashed;
  });
}

/** Objects without their identity, by `<kind> <name>`. */
export type Normal = Readonly<Record<string, unknown>>;

/** Fields that the cluster fills differently for each object, unless they are applied. */
const CHOSEN = new Set([
  ...['clusterIP', 'clusterIPs', 'nodePort', 'healthCheckNodePort', 'volumeName', 'replicas', 'nodeName'],
  ...['batch.kubernetes.io/controller-uid', 'controller-uid'],
]);

/** Volume that the API server adds to each Pod, under a name of its own. */
const TOKEN_VOLUME = /\bkube-api-access-[a-z0-9]{5}\b/g;

/** Annotations in which others count, and the record of texts, since its key differs on each Secret. */
const NOT_COMPARED = [
  COMPOSED_ANNOTATION,
  'deployment.kubernetes.io/revision',
  'deprecated.daemonset.template.generation',
];

interface Named {
  readonly name: string;
  readonly namespace: string;
  readonly elsewhere?: string;
  readonly uid: string;
  readonly digests: readonly string[];
}

/** Returns objects as two custom resources of the same spec have them in common, with the fields that each manager owns. */
export function normal(objects: readonly AnyObject[], cr: Named): Normal {
  const { name, namespace, elsewhere, uid, digests } = cr;
  const anonymous = (given: string): string => {
    const text = withoutDigests(given, digests);
    const here = elsewhere === undefined ? text : text.replaceAll(elsewhere, '<elsewhere>');
    return here.replaceAll(uid, '<uid>').replaceAll(namespace, '<namespace>').replaceAll(name, '<name>');
  };
  const entries = decoded(objects, digests).map((object) => {
    const { metadata } = object;
    const json = JSON.stringify(comparable(object)).replaceAll(TOKEN_VOLUME, 'kube-api-access');
    const [isElsewhere, isHere] = [elsewhere, namespace].map((each) => metadata.namespace === each);
    const place = isHere ? '' : isElsewhere ? '<elsewhere>/' : `${anonymous(metadata.namespace ?? '')}/`;
    const id = `${groupKind(object)} ${place}${anonymous(metadata.name)}`;
    return [id, anonymous(json.replaceAll(metadata.uid ?? ' ', '<own uid>'))] as const;
  });
  return byId(entries);
}

/** Returns objects with the texts of Secrets, also compressed ones, in place of their base64, which hides names. */
export function decoded(objects: readonly AnyObject[], except: readonly string[] = []): AnyObject[] {
  const textOf = ([key, value]: [string, unknown]): [string, unknown] => {
    if (except.includes(value as string)) return [key, value];
    const plain = unpacked(Buffer.from(String(value), 'base64'));
    return [key, isUtf8(plain) ? plain.toString() : value];
  };
  return objects.map((object) => {
    if (groupKind(object) !== 'Secret') return object;
    return { ...object, data: Object.fromEntries(Object.entries(object.data ?? {}).map(textOf)) };
  });
}

/** Returns what gzip has compressed; bytes that only look like that stay. */
function unpacked(bytes: Buffer): Buffer {
  try {
    return bytes[0] === 0x1f && bytes[1] === 0x8b ? gunzipSync(bytes) : bytes;
  } catch {
    return bytes;
  }
}

function comparable(object: AnyObject): Normal {
  const { metadata, status: _, ...content } = object;
  const { labels = {}, annotations = {}, finalizers, ownerReferences } = metadata as Normal & typeof metadata;
  const owned = ownEntries(object).map(({ manager, fieldsV1 }) => ({ manager, fieldsV1 }));
  const applied = JSON.stringify(owned);
  const isChosen = (key: string): boolean => CHOSEN.has(key) && !applied.includes(`"f:${key}"`);
  const kept = Object.entries(annotations).filter(
    ([key]) => !isRecordAnnotation(key) && !NOT_COMPARED.includes(key),
  );
  return {
    ...(JSON.parse(
      JSON.stringify(content, (key, value: unknown) => (isChosen(key) ? 'chosen' : value)),
    ) as Normal),
    metadata: { labels, annotations: Object.fromEntries(kept), finalizers, ownerReferences },
    owned,
  };
}

/** Returns objects by their ids, in order; those that differ in a digest alone are counted. */
export function byId(
  objects: readonly (readonly [id: string, json: string])[],
): Readonly<Record<string, unknown>> {
  const found: Record<string, unknown> = {};
  for (const [id, json] of objects.toSorted((a, b) => (a.join() < b.join() ? -1 : 1))) {
    let number = 1;
    while (Object.hasOwn(found, number === 1 ? id : `${id} ${number}`)) number++;
    found[number === 1 ? id : `${id} ${number}`] = JSON.parse(json) as unknown;
  }
  return found;
}

/** A place where two values differ. */
export interface Difference {
  /** Text such as `ConfigMap <name>.data.color is "red" instead of absent`. */
  readonly text: string;
  readonly expected: unknown;
  readonly found: unknown;
}

/** Compares two values. Who owns what (`owned`) differs with the values, and counts only where these don't. */
export function differences(expected: unknown, found: unknown): Difference[] {
  const all = deepDifferences(expected, found);
  const ofValues = all.filter(({ path }) => path[1] !== 'owned');
  return (ofValues.length > 0 ? ofValues : all).map(({ path, values: [first, second] }) => ({
    text: `${(path as readonly (string | number)[]).join('.')} is ${[second, first].map((value) => (value === undefined ? 'absent' : showValue(value))).join(' instead of ')}`,
    ...{ expected: first, found: second },
  }));
}

/** Text as long and as random as a hash: a whole one, or words of one, as in the name `web-5d8f7c`. */
const DIGEST = /^[\w+/=:-]{6,}$/;

const WORDS = /[A-Za-z0-9]{6,}/g;

/**
 * Returns texts in the objects of a custom resource that are hashes of something with its name in it: what differs under
 * another name of the same length, beside the name itself.
 */
export function digestsOf(
  made: (name: string) => readonly AnyObject[],
  name: string,
  objects = made(name),
): readonly string[] {
  const other = `${name.startsWith('z') ? 'y' : 'z'}${name.slice(1)}`;
  const found = differences(decoded(objects), decoded(made(other))).flatMap(({ expected, found: now }) => {
    if (typeof expected !== 'string' || typeof now !== 'string' || expected.length !== now.length) return [];
    const renamed = expected.replaceAll(name, other);
    if (renamed === expected && DIGEST.test(expected)) return [expected];
    const words = [...renamed.matchAll(WORDS)].filter(({ 0: word, index }) => !now.startsWith(word, index));
    return words.map(([word]) => word);
  });
  return [...new Set(found)];
}

/** Replaces each checksum of a Secret and each digest by the same word, the longest first: one may be the begin of another. */
export function withoutDigests(text: string, digests: readonly string[]): string {
  const longestFirst = digests.toSorted((a, b) => b.length - a.length);
  return longestFirst.reduce(
    (left, digest) => left.replaceAll(digest, '<digest>'),
    text.replaceAll(SECRET_CHECKSUM, '<digest>'),
  );
}
