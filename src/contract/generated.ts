import type { ChangeSet } from './change.js';
import type { ConditionProps } from './conditions.js';
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
  /** Whether a value that was emptied counts as missing, and is made again. @default false - it stalls the custom resource */
  readonly emptyIsMissing?: boolean;
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

/** Type of the condition that says which rotation was followed; the Secret says so too, until it is restored. */
export const ROTATED = 'Rotated';

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
  /** Keys that have an empty value, though they may not. @default - none */
  readonly empty?: readonly string[];
  readonly checksum?: string;
};

/** Generates values for the custom resources of one kind. */
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
      const { type, data } = object as { readonly type?: unknown; readonly data?: SecretData };
      const keys = presentKeys(this.values, data);
      const empty = keys.filter((key) => !data?.[key]);
      return {
        ...kept,
        ...{ keys, ...(empty.length > 0 && { empty }) },
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

  /**
   * @throws OperatorError `EmptyValue` where a value is there and empty: no Pod is to start with an empty password;
   * `SecretRestored` where a rotation looks pending that was followed
   */
  requireClear(cr: CustomResource, known: AnyObject | undefined): void {
    if (!known) return;
    const what = describeRef(refOf(known));
    const [key] = (known as KeptSecret).empty ?? [];
    if (key !== undefined) {
      const message = `${what}: the value of ${key} is empty; set it, or remove the key to have a new value made`;
      throw new OperatorError({ reason: 'EmptyValue', message });
    }
    const asked = askedOf(cr);
    if (isFollowed(cr, known) || !isGenerated(known) || followedOf(cr) !== asked) return;
    const message = `${what} was restored from before ${asked}, and nothing is replaced; remove the annotation to keep the values of the Secret, or give it another text to have new ones made`;
    throw new OperatorError({ reason: 'SecretRestored', message });
  }

  /** Returns the condition that says which rotation was followed last, if any is asked for. */
  conditionOf(cr: CustomResource, known: AnyObject | undefined): ConditionProps | undefined {
    const asked = askedOf(cr);
    const message = known && isFollowed(cr, known) ? asked : asked && followedOf(cr);
    return message ? { type: ROTATED, status: 'True', reason: 'ValuesMade', message } : undefined;
  }

  /** Returns the values to be made, where any are missing, or the annotation asks for all of them again. */
  missing(cr: CustomResource, known: AnyObject | undefined): GeneratedValues | undefined {
    const { keys = [], metadata } = (known ?? { metadata: {} }) as KeptSecret;
    const isComplete =
      known &&
      !metadata.deletionTimestamp &&
      controllerOf(known)?.uid === cr.metadata.uid &&
      Object.keys(this.values).every((key) => keys.includes(key)) &&
      isFollowed(cr, known);
    return isComplete ? undefined : this.values;
  }

  /** Returns the event that says what was made, without the values. */
  eventOf(cr: CustomResource, known: AnyObject | undefined, changes: ChangeSet): EventProps | undefined {
    const made = changes.flatMap((change) => change.made ?? []);
    if (made.length === 0) return undefined;
    const isRotation = known && isGenerated(known) && !isFollowed(cr, known);
    const what = isRotation
      ? `replaced all values, for ${askedOf(cr) ?? ''}`
      : `made new values of ${made.join(', ')}`;
    const note = `Secret ${this.propsOf(cr).secretName}: ${what}`;
    return { type: 'Normal', reason: 'ValuesGenerated', action: 'Generate', note };
  }
}

type SecretData = Readonly<Record<string, unknown>>;

/** Returns those keys of a Secret that the kind has, and that have a value, or an empty one that doesn't count as missing. */
export function presentKeys(values: GeneratedValues, data: SecretData = {}): string[] {
  return Object.keys(data).filter(
    (key) => Object.hasOwn(values, key) && (data[key] || !values[key]?.emptyIsMissing),
  );
}

/** Returns the rotation that a custom resource asks for, as its condition shows it. */
function askedOf({ metadata }: CustomResource): string | undefined {
  const token = metadata.annotations?.[ROTATE_ANNOTATION];
  return token && `${ROTATE_ANNOTATION}=${token}`;
}

/** Returns the rotation that was followed last, as its condition shows it. */
function followedOf({ status }: CustomResource): string | undefined {
  const { conditions } = (status ?? {}) as { readonly conditions?: readonly Partial<ConditionProps>[] };
  return conditions?.find(({ type }) => type === ROTATED)?.message;
}

function isFollowed({ metadata }: CustomResource, known: AnyObject): boolean {
  return isMadeFor(
    metadata.annotations?.[ROTATE_ANNOTATION],
    known.metadata.annotations?.[GENERATED_ANNOTATION],
  );
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
