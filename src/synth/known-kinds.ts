import type { CrdVersion, CustomResourceDefinition } from '../contract/crd.js';
import { storedVersion } from '../contract/crd.js';
import type { Kind } from '../contract/kind.js';
import { groupOf } from '../contract/object.js';
import type { UnknownRule } from './cel/rule.js';
import { applyDefaults } from './defaults.js';
import type { Problem } from './problem.js';
import { showValue } from './problem.js';
import { compileSchema, optionsFor, unknownRules } from './schema.js';
import type { Validate } from './schema.js';

/** A kind in the version that a document is written in. */
export interface KnownVersion {
  readonly kind: Kind;
  readonly validate: Validate;
  /** The object as the API server would validate it. */
  withDefaults(value: object): object;
  /** The validated object as the API server would store it. */
  stored(value: object): object;
}

/** Finds the kind of a document by group, version and kind. */
export class KnownKinds {
  private readonly versions = new Map<string, KnownVersion>();

  /** @param warn takes one line for each kind that is asked for and has rules that aren't judged here */
  constructor(
    private readonly kinds: readonly Kind[],
    private readonly warn: (line: string) => void = () => undefined,
  ) {}

  /** The version that a document is of, or what is wrong with its `apiVersion` and `kind`. */
  find(document: { readonly apiVersion?: unknown; readonly kind?: unknown }): KnownVersion | Problem {
    const { apiVersion, kind } = document;
    if (typeof apiVersion !== 'string' || apiVersion === '') return this.unusable('apiVersion', apiVersion);
    if (typeof kind !== 'string' || kind === '') return this.unusable('kind', kind);
    const identity = `${apiVersion}/${kind}`;
    const known = this.versions.get(identity);
    if (known) return known;
    const found = this.load(apiVersion, kind);
    if ('kind' in found) this.versions.set(identity, found);
    return found;
  }

  private load(apiVersion: string, kindName: string): KnownVersion | Problem {
    const kind = this.kinds.find(
      ({ crd: { spec } }) => spec.group === groupOf(apiVersion) && spec.names.kind === kindName,
    );
    if (!kind) {
      const message = `${kindName} of ${apiVersion} is not a kind that is rendered here`;
      return { path: ['kind'], message, remedy: `the kinds are ${this.listed()}` };
    }
    const { spec } = kind.crd;
    const version = spec.versions.find(
      ({ name, served }) => served && apiVersion === `${spec.group}/${name}`,
    );
    if (!version) {
      const served = spec.versions
        .filter((candidate) => candidate.served)
        .map(({ name }) => `${spec.group}/${name}`);
      const message = `${apiVersion} is not a version in which ${kindName} is served`;
      return { path: ['apiVersion'], message, remedy: `write ${served.join(' or ')}` };
    }
    if (!version.storage && converts(kind.crd)) {
      const message = `${apiVersion} is converted by a webhook, which is not asked here`;
      return { path: ['apiVersion'], message, remedy: `write ${kind.type.apiVersion}` };
    }
    this.warnAbout(`${kindName} of ${apiVersion}`, unknownRules(version.schema.openAPIV3Schema));
    return knownVersion(kind, version);
  }

  private warnAbout(type: string, rules: readonly UnknownRule[]): void {
    if (rules.length === 0) return;
    const listed = rules.map(({ rule, why }) => `${showValue(rule)} (${why})`).join(', ');
    this.warn(`${type}: these rules use what only the API server knows, so it alone judges them: ${listed}`);
  }

  private unusable(field: string, value: unknown): Problem {
    const message = value === undefined ? 'is missing' : `${showValue(value)} is not a name`;
    return { path: [field], message, remedy: `add it; the kinds are ${this.listed()}` };
  }

  private listed(): string {
    return this.kinds.map(({ type }) => `${type.kind} (${type.apiVersion})`).join(', ') || 'none';
  }
}

function converts({ spec }: CustomResourceDefinition): boolean {
  const { conversion } = spec as { readonly conversion?: { readonly strategy?: string } };
  return conversion?.strategy === 'Webhook';
}

function knownVersion(kind: Kind, version: CrdVersion): KnownVersion {
  const schema = version.schema.openAPIV3Schema;
  const stored = storedVersion(kind.crd);
  return {
    kind,
    validate: compileSchema(schema, optionsFor(version)),
    withDefaults: (value) => applyDefaults(value, schema) as object,
    // Between versions without a webhook only `apiVersion` changes, and the defaults of the new one apply.
    stored: (value) =>
      version === stored
        ? value
        : (applyDefaults(
            { ...value, apiVersion: kind.type.apiVersion },
            stored.schema.openAPIV3Schema,
          ) as object),
  };
}
