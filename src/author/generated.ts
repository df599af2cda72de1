import type { ChangeSet } from '../contract/change.js';
import type { ConditionProps } from '../contract/conditions.js';
import type { Watch } from '../contract/controller.js';
import { OperatorError } from '../contract/error.js';
import type { Generated, KindGenerated } from '../contract/kind.js';
import type { EventProps, GeneratedValue, GeneratedValues } from '../contract/plan.js';
import { childLabels, GENERATED_ANNOTATION, ROTATE_ANNOTATION, selectorLabels } from '../contract/names.js';
import { controllerOf, describeRef, objectKey } from '../contract/object.js';
import type { AnyObject, CustomResource } from '../contract/object.js';
import type { ResourceType } from '../contract/resource.js';
import {
  isGenerated,
  isMadeFor,
  LETTERS_AND_DIGITS,
  presentKeys,
  ROTATED,
  rotationRecord,
} from '../values/generated.js';
import type { SecretData } from '../values/generated.js';
import { secretChecksum, UNKNOWN_CHECKSUM } from '../values/json.js';
import { keepStatus } from '../values/projections.js';

/** Minimum number of random bits of a value, so that its checksum says nothing about it. */
export const MIN_BITS = 64;

export function bitsOf({ length = 32, alphabet = LETTERS_AND_DIGITS, bytes }: GeneratedValue): number {
  return bytes === undefined ? length * Math.log2(new Set(alphabet).size) : bytes * 8;
}

/** A Secret as it is kept: without its values. */
type KeptSecret = AnyObject & {
  readonly keys?: readonly string[];
  /** Keys that have an empty value, though they may not. @default - none */
  readonly empty?: readonly string[];
  readonly checksum?: string;
};

/** Generates values for the custom resources of one kind. */
export class GeneratedSecrets implements KindGenerated {
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
    const what = describeRef(known);
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
