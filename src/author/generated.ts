import type { ChangeSet } from '../contract/change.js';
import type { ConditionProps } from '../contract/conditions.js';
import type { Watch } from '../contract/controller.js';
import { OperatorError } from '../contract/error.js';
import type { Generated, KindGenerated } from '../contract/kind.js';
import type {
  CertificateRequests,
  ComposedTexts,
  EventProps,
  GeneratedValue,
  GeneratedValues,
  GenerateStep,
} from '../contract/plan.js';
import { childLabels, GENERATED_ANNOTATION, ROTATE_ANNOTATION, selectorLabels } from '../contract/names.js';
import { controllerOf, describeRef, objectKey } from '../contract/object.js';
import type { AnyObject, CustomResource } from '../contract/object.js';
import type { ResourceType } from '../contract/resource.js';
import { CA_CERT, CA_KEY, heldCertificates, isCurrent, MAX_DAYS } from '../values/certificates.js';
import type { HeldCertificates } from '../values/certificates.js';
import {
  composedOf,
  isGenerated,
  isMadeFor,
  LETTERS_AND_DIGITS,
  presentKeys,
  ROTATED,
  rotationRecord,
} from '../values/generated.js';
import type { SecretData } from '../values/generated.js';
import { contentHash, secretChecksum, UNKNOWN_CHECKSUM } from '../values/json.js';
import { showValue } from '../values/path.js';
import { keepStatus } from '../values/projections.js';
import { checkNames, refuse } from './definition.js';

/** Text that is made of generated values, and stands beside them in their Secret. */
export interface ComposedValue<Spec, Settings = unknown> {
  /**
   * Returns the text, as a connection string; again when the custom resource changes what it is made of, or a value is replaced.
   * It depends on its argument alone, and has the texts that are declared before it among the values.
   */
  readonly text: (input: {
    readonly cr: CustomResource<Spec>;
    readonly values: Readonly<Record<string, string>>;
    /** The operator's settings for the kind; a change makes the text again. */
    readonly settings: Settings;
  }) => string;
}

/** Texts as those of `ComposedValue`, of which the custom resource chooses the keys. */
export interface ComposedValues<Spec, Settings = unknown> {
  /** Returns the texts by their keys in the Secret; one that isn't returned any more is removed. */
  readonly texts: (
    input: Parameters<ComposedValue<Spec, Settings>['text']>[0],
  ) => Readonly<Record<string, string>>;
}

/**
 * Certificate of a server or client, and its key, `<name>.crt` and `<name>.key` in the Secret. It is issued by a certificate authority that
 * the custom resource alone has, whose certificate is `ca.crt` there, and renewed when a third of its life is left.
 */
export interface GeneratedCertificate<Spec> {
  /** Returns its DNS names, at least one; with others, the certificate is issued again. It depends on its argument alone. */
  readonly dnsNames: (cr: CustomResource<Spec>) => readonly string[];
  /** Life of the certificate, at most 1825. @default 90 */
  readonly days?: number;
}

/** Anything that the operator makes for a custom resource, and keeps in its Secret. */
export type GeneratedPart<Spec, Settings = unknown> =
  | GeneratedValue
  | ComposedValue<Spec, Settings>
  | ComposedValues<Spec, Settings>
  | GeneratedCertificate<Spec>;

/** Keys of the Secret of a kind's `generated`: a certificate has several, and those that a custom resource chooses aren't known. */
export type GeneratedName<Values> = {
  [Name in keyof Values & string]: Values[Name] extends { readonly dnsNames: unknown }
    ? `${Name}.crt` | `${Name}.key` | 'ca.crt'
    : Values[Name] extends { readonly texts: unknown }
      ? never
      : Name;
}[keyof Values & string];

const SECRET_KEY = /^[-._a-zA-Z0-9]{1,253}$/;

/** Number of days that a certificate is valid where its kind doesn't say. */
const DEFAULT_DAYS = 90;

const DNS_NAME =
  /^(?=.{1,253}$)(?:\*\.)?[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/;

/** Minimum number of random bits of a value, so that its checksum says nothing about it. */
const MIN_BITS = 64;

export function bitsOf({ length = 32, alphabet = LETTERS_AND_DIGITS, bytes }: GeneratedValue): number {
  return bytes === undefined ? length * Math.log2(new Set(alphabet).size) : bytes * 8;
}

/** A Secret as it is kept: without its values. */
type KeptSecret = AnyObject & {
  readonly keys?: readonly string[];
  /** Keys that have an empty value, though they may not. @default - none */
  readonly empty?: readonly string[];
  readonly checksum?: string;
  /** Template of its texts. @default - its texts are missing, or out of date */
  readonly composed?: string;
  readonly certificates?: HeldCertificates;
};

/** Everything that a Secret is to have. */
export type Missing = Pick<GenerateStep, 'values' | 'texts' | 'certificates'>;

const OPTIONS = ['length', 'alphabet', 'bytes', 'emptyIsMissing', 'text', 'texts', 'dnsNames', 'days'];

/** Returns the generated values of a kind. @throws OperatorError `InvalidDefinition` where one can't be what was meant */
export function generatedOf(
  owner: ResourceType,
  given: Readonly<Record<string, GeneratedPart<never, never>>>,
  nameOf?: (name: string) => string,
): GeneratedSecrets {
  for (const [name, value] of Object.entries(given)) {
    const where = `defineKind: generated.${name}`;
    checkNames(where, value, OPTIONS, 'write { length: 32 } or { bytes: 32 }');
    if ('text' in value || 'texts' in value) {
      const isMore = Object.values(value).some((one, index) => index > 0 || typeof one !== 'function');
      refuse(
        where,
        isMore && 'a text is made by a function alone; write { text: ({ cr, values }) => values.password }',
      );
    } else if ('dnsNames' in value || 'days' in value) checkCertificate(where, name, value, given);
    else
      refuse(
        where,
        value.bytes !== undefined &&
          (value.length ?? value.alphabet) !== undefined &&
          'give either bytes or length and alphabet',
        !(bitsOf(value) >= MIN_BITS) &&
          `can be guessed: it has less than ${MIN_BITS} random bits; make it longer`,
      );
  }
  const [one, other]: unknown[] = nameOf ? [nameOf('web'), nameOf('db')] : ['web', 'db'];
  const isName = typeof one === 'string' && typeof other === 'string' && one !== other;
  refuse(
    'defineKind',
    !owner.namespaced &&
      `generated: ${owner.kind} has no namespace for a Secret; leave it out, and generate the values for a kind in namespaces`,
    !isName &&
      'generatedSecretName: it returns the name of a Secret, another one for each custom resource; write (name) => `${name}-tls`',
  );
  return new GeneratedSecrets(owner, given, nameOf);
}

function checkCertificate(
  where: string,
  name: string,
  value: object,
  all: Readonly<Record<string, GeneratedPart<never, never>>>,
): void {
  const { dnsNames, days = 1, ...others } = value as Partial<GeneratedCertificate<never>>;
  const isFunction = typeof dnsNames === 'function';
  const keys = isFunction ? [...keysOf({ [name]: { dnsNames } }), CA_KEY] : [];
  const taken = keys.find((key) => Object.hasOwn(all, key)) ?? (name === 'ca' ? CA_CERT : undefined);
  refuse(
    where,
    (!isFunction || Object.keys(others).length > 0) &&
      'a certificate has a function and days; write { dnsNames: (cr) => [`${cr.metadata.name}.${cr.metadata.namespace}.svc`], days: 90 }',
    (!Number.isInteger(days) || days < 1 || days > MAX_DAYS) &&
      `days: ${showValue(days)} is none; write a whole number from 1 to ${MAX_DAYS}`,
    taken !== undefined && `the key ${taken} has another use in its Secret; give it another name`,
  );
}

/** Generates values for the custom resources of one kind. */
export class GeneratedSecrets implements KindGenerated {
  private readonly values: GeneratedValues;
  private readonly texts: readonly (readonly [
    name: string,
    text: ComposedValue<never, never>['text'] | ComposedValues<never, never>['texts'],
  ])[];
  private readonly certificates: Readonly<Record<string, GeneratedCertificate<never>>>;
  /** Keys that the kind itself has. */
  private readonly taken: ReadonlySet<string>;

  /** @param nameOf returns the name of the Secret by that of the custom resource; the default has the kind in it, since another kind may have a custom resource of that name */
  constructor(
    private readonly owner: ResourceType,
    private readonly all: Readonly<Record<string, GeneratedPart<never, never>>>,
    private readonly nameOf = (name: string): string => `${name}-${owner.kind.toLowerCase()}-generated`,
  ) {
    const parts = Object.entries(all);
    this.texts = parts.flatMap(([name, one]): (typeof this.texts)[number][] => {
      if ('texts' in one) return [[name, one.texts]];
      return 'text' in one ? [[name, one.text]] : [];
    });
    const certificates = parts.flatMap(([name, one]) => ('dnsNames' in one ? [[name, one] as const] : []));
    this.certificates = Object.fromEntries(certificates);
    const others = { ...this.certificates, ...Object.fromEntries(this.texts) };
    this.values = Object.fromEntries(
      parts.filter(([name]) => !Object.hasOwn(others, name)),
    ) as GeneratedValues;
    this.taken = new Set([...keysOf(all), ...(certificates.length > 0 ? [CA_KEY] : [])]);
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
      if (!kept || !isGenerated(object)) return kept;
      const { type, data } = object as { readonly type?: unknown; readonly data?: SecretData };
      const certificates = heldCertificates(data ?? {}, Object.keys(this.certificates));
      const keys = presentKeys(this.values, data);
      const empty = keys.filter((key) => !data?.[key]);
      const composed = this.texts.length > 0 ? composedOf(object, this.values) : undefined;
      return {
        ...kept,
        ...{ keys, ...(empty.length > 0 && { empty }), ...(composed !== undefined && { composed }) },
        ...(Object.keys(certificates).length > 0 && { certificates }),
        checksum: secretChecksum(object.metadata, { type, data }),
      };
    };
    // An owner may be set by those alone who may delete the object.
    return { ...of, keep, writes: ['create', 'patch', 'delete'] };
  }

  keyOf({ metadata: { namespace, name } }: CustomResource): string {
    return objectKey(namespace, this.nameOf(name));
  }

  secretOf({ metadata }: CustomResource): AnyObject {
    const { name, namespace, annotations } = metadata;
    return {
      ...{ apiVersion: 'v1', kind: 'Secret' },
      type: 'tls' in this.certificates ? 'kubernetes.io/tls' : 'Opaque',
      metadata: {
        ...{ name: this.nameOf(name), ...(namespace && { namespace }) },
        labels: childLabels(this.owner, name),
        annotations: { [GENERATED_ANNOTATION]: rotationRecord(annotations?.[ROTATE_ANNOTATION] ?? '') },
      },
    };
  }

  propsOf({ metadata }: CustomResource, known?: AnyObject): Generated {
    const name = this.nameOf(metadata.name);
    const keys = keysOf(this.all).map((key) => [key, { name, key }] as const);
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

  /**
   * Returns what is to be made, where anything is missing or out of date, or the annotation asks for all of it again.
   * @throws OperatorError `InvalidCertificate` where a certificate would have no DNS name, or something else as one
   */
  missing(
    cr: CustomResource,
    known: AnyObject | undefined,
    { now, settings }: { readonly now: Date; readonly settings?: unknown },
  ): Missing | undefined {
    const { values } = this;
    const { keys = [], composed, metadata, ...kept } = (known ?? { metadata: {} }) as KeptSecret;
    const { certificates: held = {} } = kept;
    const texts = this.textsOf(cr, settings);
    const certificates = this.requestsOf(cr);
    const isComplete =
      known &&
      !metadata.deletionTimestamp &&
      controllerOf(known)?.uid === cr.metadata.uid &&
      Object.keys(values).every((key) => keys.includes(key)) &&
      composed === texts?.template &&
      Object.entries(certificates).every(([name, one]) => isCurrent(held[name], one, now.getTime())) &&
      isFollowed(cr, known);
    return isComplete ? undefined : { values, certificates, ...(texts && { texts }) };
  }

  /** Returns the time at which a certificate is to be renewed, if there is any. */
  renewalOf(known: AnyObject | undefined): Date | undefined {
    const { certificates = {} } = (known ?? {}) as Partial<KeptSecret>;
    const times = Object.values(certificates).map(({ renewAt }) => renewAt);
    return times.length > 0 ? new Date(Math.min(...times)) : undefined;
  }

  private requestsOf(cr: CustomResource): CertificateRequests {
    const requests = Object.entries(this.certificates).map(([name, { dnsNames, days = DEFAULT_DAYS }]) => {
      const names = dnsNames(cr as never).map((one: unknown) => String(one).toLowerCase());
      const wrong = names.find((one) => !DNS_NAME.test(one));
      if (names.length === 0 || wrong !== undefined) {
        const what = wrong === undefined ? 'it has no DNS name' : `${JSON.stringify(wrong)} is no DNS name`;
        const message = `The certificate ${name} of ${describeRef(cr)} can't be issued: ${what}`;
        throw new OperatorError({ reason: 'InvalidCertificate', message });
      }
      return [name, { dnsNames: [...new Set(names)].sort(), days }] as const;
    });
    return Object.fromEntries(requests);
  }

  /** Returns the texts of a custom resource; none where the kind has none. */
  private textsOf(cr: CustomResource, settings: unknown): ComposedTexts | undefined {
    if (this.texts.length === 0) return undefined;
    const compose: ComposedTexts['compose'] = (values) => {
      const composed = new Map<string, string>();
      for (const [name, text] of this.texts) {
        const all = { ...values, ...Object.fromEntries(composed) };
        const made: unknown = text({ cr: cr as never, settings: settings as never, values: all });
        const isChosen = !this.taken.has(name);
        for (const [key, one] of isChosen ? Object.entries(made as object) : [[name, made] as const]) {
          if (typeof one !== 'string') throw new TypeError(`generated.${name}: text has returned no text`);
          if (isChosen && (!SECRET_KEY.test(key) || composed.has(key) || this.taken.has(key))) {
            const message = `${JSON.stringify(key)} can't be a key of ${describeRef(this.secretOf(cr))}: it has another use there, or other characters than letters, digits, "-", "_" and "."`;
            throw new OperatorError({ reason: 'Invalid', message });
          }
          composed.set(key, one);
        }
      }
      return Object.fromEntries(composed);
    };
    const placeholders = Object.fromEntries(Object.keys(this.values).map((name) => [name, `{${name}}`]));
    return { template: contentHash(compose(placeholders)), compose };
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

/** Returns the keys of a Secret that its users may read. */
function keysOf(all: Readonly<Record<string, GeneratedPart<never, never>>>): string[] {
  const keys = Object.entries(all).flatMap(([name, one]) => {
    if ('texts' in one) return [];
    return 'dnsNames' in one ? [`${name}.crt`, `${name}.key`, CA_CERT] : [name];
  });
  return [...new Set(keys)];
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
