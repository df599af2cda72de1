import type { ChangeSet } from './change.js';
import type { EventProps, Watch } from './controller.js';
import { OperatorError } from './error.js';
import { childLabels, GENERATED_ANNOTATION, ROTATE_ANNOTATION, selectorLabels } from './names.js';
import {
  contentHash,
  controllerOf,
  describeRef,
  objectKey,
  refOf,
  secretChecksum,
  UNKNOWN_CHECKSUM,
} from './object.js';
import type { AnyObject, CustomResource } from './object.js';
import { keepStatus } from './projections.js';
import { resourceType } from './resource.js';
import type { ResourceType } from './resource.js';

/** A value that the operator makes at random: text, or bytes in base64 for a key. */
export interface GeneratedValue {
  /** Characters of the text. @default 32 */
  readonly length?: number;
  /** Characters that it is made of, each once. @default - letters and digits */
  readonly alphabet?: string;
  /** Random bytes, instead of text: the value is their base64. @default - text */
  readonly bytes?: number;
}

/** Values that the operator makes for each custom resource of a kind, by their keys in its Secret. */
export type GeneratedValues = Readonly<Record<string, GeneratedValue>>;

/** Where the construct finds what was generated; the values themselves it never gets. */
export interface Generated<Name extends string = string> {
  /** The Secret that holds all values, e.g. for `envFrom` or a volume. */
  readonly secretName: string;
  /** Values for `secretKeyRef`, by name. */
  readonly keys: { readonly [Key in Name]: { readonly name: string; readonly key: Key } };
  /**
   * Hash of the values, keyed by the UID of their Secret, for `checksumAnnotations({ generated })`; without a cluster, or before they
   * are made, `unknown-without-a-cluster`.
   */
  readonly checksum: string;
}

/** The least strength of a value, so that its checksum says nothing about it. */
export const LEAST_BITS = 64;

const LETTERS_AND_DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

/** Returns the value as it stands in the Secret, before it is encoded. @param random returns an integer from 0 to below its argument */
export function makeValue(
  { length = 32, alphabet = LETTERS_AND_DIGITS, bytes }: GeneratedValue,
  random: (below: number) => number,
): string {
  const pick = <T>(count: number, from: number, as: (index: number) => T): T[] =>
    Array.from({ length: count }, () => as(random(from)));
  if (bytes !== undefined) return Buffer.from(pick(bytes, 256, (byte) => byte)).toString('base64');
  return pick(length, alphabet.length, (index) => alphabet[index]).join('');
}

export function bitsOf({ length = 32, alphabet = LETTERS_AND_DIGITS, bytes }: GeneratedValue): number {
  return bytes === undefined ? length * Math.log2(alphabet.length) : bytes * 8;
}

export const secretType = resourceType({ apiVersion: 'v1', kind: 'Secret' });

/** Reports whether an object is a Secret of generated values, which is never pruned. */
export function isGenerated({ kind, metadata }: AnyObject): boolean {
  return kind === 'Secret' && metadata.annotations?.[GENERATED_ANNOTATION] !== undefined;
}

/** A Secret as it is kept: without its values. */
type KeptSecret = AnyObject & {
  readonly keys?: readonly string[];
  /** Keys that have an empty value. @default - none */
  readonly empty?: readonly string[];
  readonly checksum?: string;
};

/** What is generated for the custom resources of one kind. */
export class KindGenerated {
  /** Follows the name of the custom resource in that of its Secret: kinds may have custom resources of one name. */
  private readonly suffix: string;

  constructor(
    private readonly owner: ResourceType,
    private readonly values: GeneratedValues,
  ) {
    this.suffix = `-${owner.kind.toLowerCase()}-generated`;
  }

  /** Label of every object of the kind: no other Secret need be read. */
  get selector(): string {
    return Object.keys(selectorLabels(this.owner, '')).join();
  }

  /** Returns a watch of Secrets that also keeps which values these have, and a hash of them. */
  watch(of: Watch): Watch {
    const keepOthers = of.keep ?? keepStatus;
    const keep = (object: AnyObject): AnyObject | undefined => {
      const kept = keepOthers(object);
      if (!kept || !object.metadata.name.endsWith(this.suffix)) return kept;
      const { type, data } = object as { readonly type?: unknown; readonly data?: object };
      const empty = Object.entries(data ?? {}).flatMap(([key, value]) => (value ? [] : [key]));
      return {
        ...kept,
        keys: Object.keys(data ?? {}),
        ...(empty.length > 0 && { empty }),
        checksum: secretChecksum(object.metadata, { type, data }),
      };
    };
    // An owner may be set by those alone who may delete the object.
    return { ...of, keep, writes: ['create', 'patch', 'delete'] };
  }

  keyOf({ metadata: { namespace, name } }: CustomResource): string {
    return objectKey(namespace, name + this.suffix);
  }

  /** Returns the Secret of a custom resource, without its values. */
  secretOf({ metadata }: CustomResource): AnyObject {
    const { name, namespace, annotations } = metadata;
    return {
      ...{ apiVersion: 'v1', kind: 'Secret', type: 'Opaque' },
      metadata: {
        ...{ name: name + this.suffix, ...(namespace && { namespace }) },
        labels: childLabels(this.owner, name),
        annotations: { [GENERATED_ANNOTATION]: rotationRecord(annotations?.[ROTATE_ANNOTATION] ?? '') },
      },
    };
  }

  /** Returns what the construct gets. @param known the Secret as it is kept */
  propsOf({ metadata }: CustomResource, known?: AnyObject): Generated {
    const name = metadata.name + this.suffix;
    const keys = Object.keys(this.values).map((key) => [key, { name, key }] as const);
    const { checksum = UNKNOWN_CHECKSUM } = (known ?? {}) as Partial<KeptSecret>;
    return { secretName: name, keys: Object.fromEntries(keys), checksum };
  }

  /** @throws OperatorError `EmptyValue` where a value is there and empty: no Pod is to start with an empty password */
  requireFilled(known: AnyObject | undefined): void {
    const { empty = [] } = (known ?? {}) as Partial<KeptSecret>;
    const key = empty.find((one) => Object.hasOwn(this.values, one));
    if (known === undefined || key === undefined) return;
    const message = `${describeRef(refOf(known))}: the value of ${key} is empty; set it, or remove the key to have a new value made`;
    throw new OperatorError({ reason: 'EmptyValue', message });
  }

  /** Returns the values to be made, where any are missing, or the annotation asks for all of them again. */
  missing(cr: CustomResource, known: AnyObject | undefined): GeneratedValues | undefined {
    const { keys = [], metadata } = (known ?? { metadata: {} }) as KeptSecret;
    const isComplete =
      known &&
      !metadata.deletionTimestamp &&
      controllerOf(known)?.uid === cr.metadata.uid &&
      Object.keys(this.values).every((key) => keys.includes(key)) &&
      isMadeFor(cr.metadata.annotations?.[ROTATE_ANNOTATION], metadata.annotations?.[GENERATED_ANNOTATION]);
    return isComplete ? undefined : this.values;
  }

  /** Returns the event that says what was made, without the values. */
  eventOf(cr: CustomResource, known: AnyObject | undefined, changes: ChangeSet): EventProps | undefined {
    const [{ action } = { action: 'skipped' }] = changes;
    if (action !== 'created' && action !== 'configured') return undefined;
    const { secretName } = this.propsOf(cr);
    const { keys = [] } = (known ?? {}) as Partial<KeptSecret>;
    const all = Object.keys(this.values);
    const lacking = all.filter((key) => action === 'created' || !keys.includes(key));
    const note =
      lacking.length > 0
        ? `Secret ${secretName}: made new values of ${lacking.join(', ')}`
        : `Secret ${secretName}: replaced all values, for ${ROTATE_ANNOTATION}=${cr.metadata.annotations?.[ROTATE_ANNOTATION] ?? ''}`;
    return { type: 'Normal', reason: 'ValuesGenerated', action: 'Generate', note };
  }
}

/** Maximum number of earlier rotations that a Secret remembers. */
const MAX_ROTATIONS = 50;

/** Returns the value of `generated` for a rotation: its text, and below it hashes of those before, the latest first. */
export function rotationRecord(token: string, before = ''): string {
  const [last = '', ...earlier] = before.split('\n');
  const all = last === '' ? earlier : [tokenHash(last), ...earlier];
  return [onOneLine(token), ...all.slice(0, MAX_ROTATIONS)].join('\n');
}

/** Returns the text of the rotation that values were made for. @param made the value of `generated` */
export function rotationOf(made: string): string {
  return made.split('\n', 1)[0] ?? '';
}

/**
 * Reports whether values are those that a rotation has asked for. Without a token, they are; so are those of a Secret that was
 * adopted, until the next token. A token that was followed before, as where a revert brings it back, asks for nothing.
 */
export function isMadeFor(token: string | undefined, made: string | undefined): boolean {
  if (made === undefined) return false;
  if (!token || rotationOf(made) === onOneLine(token)) return true;
  return made
    .split('\n')
    .slice(1)
    .includes(tokenHash(onOneLine(token)));
}

function onOneLine(token: string): string {
  return token.replaceAll('\n', ' ');
}

function tokenHash(token: string): string {
  return contentHash([token]).slice(0, 16);
}
