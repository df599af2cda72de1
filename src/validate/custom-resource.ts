import { storedVersion } from '../contract/crd.js';
import type { Kind } from '../contract/kind.js';
import { groupOf, objectKey } from '../contract/object.js';
import type { AnyObject, CustomResource } from '../contract/object.js';
import type { ResourceType } from '../contract/resource.js';
import { suggest } from '../values/suggest.js';
import { unknownRules } from './cel/rules.js';
import { applyDefaults } from './defaults.js';
import { parseDocuments, placeOf, remarkLine, readSources } from './document.js';
import type { Document, Remark, SourceOptions } from './document.js';
import { checkNames, isDnsLabel, isDnsSubdomain } from './formats.js';
import { fileName } from './output.js';
import { formatProblem, InputError, MISSING } from './problem.js';
import { showValue } from '../values/path.js';
import type { Problem } from './problem.js';
import { validatorOf } from './schema.js';
import type { Validate } from './schema.js';
import { isMap, valueAt } from '../values/json.js';

export interface CheckOptions {
  readonly kinds: readonly Kind[];
  /**
   * The namespace of what is namespaced and doesn't say where it belongs.
   * @default - none: it is rendered without a namespace
   */
  readonly namespace?: string;
  /** Reports whether a document is one that custom resources refer to, and takes it. @default - none is */
  readonly takes?: (document: Document) => boolean;
  /** Takes a line for each kind in use with rules that only the API server can judge. @default - no report */
  readonly warn?: (line: string) => void;
  /**
   * Returns what the cluster has under that name, in that version of its kind: then a document is judged as an update of it.
   * @default - every document is judged as one that is to be created
   */
  readonly live?: (type: ResourceType, key: string) => Promise<AnyObject | undefined>;
}

export type ReadOptions = SourceOptions & CheckOptions;

/** A custom resource as the API server would store it, and where it comes from. */
export interface CustomResourceInput {
  readonly kind: Kind;
  readonly cr: CustomResource;
  readonly document: Document;
  /** The kind in the version that the document is written in. */
  readonly type: ResourceType;
  /** Live object in that version, where that was asked. @default - nothing */
  readonly live?: AnyObject;
}

/**
 * Reads custom resources and validates them by the schemas of their kinds. No cluster is asked, but by `live`.
 * @returns the custom resources in the order of the sources, with the defaults of their schemas
 * @throws InputError with every problem of every document
 */
export async function readCustomResources(options: ReadOptions): Promise<CustomResourceInput[]> {
  requireNamespace(options.namespace);
  const problems: string[] = [];
  const sources = await readSources(options);
  const documents = sources.flatMap((source) =>
    parseDocuments(source, (problem) => void problems.push(problem)),
  );
  const checked = await checkDocuments(documents, options);
  problems.push(...checked.problems.map(remarkLine));
  if (checked.inputs.length === 0 && problems.length === 0)
    problems.push(
      `${options.sources.join(', ')}: there is no ${documents.length === 0 ? 'document' : 'custom resource'} in it; give at least one custom resource`,
    );
  if (problems.length > 0) throw new InputError(problems);
  return checked.inputs;
}

/** @throws InputError where it can't be the name of a namespace */
export function requireNamespace(namespace: string | undefined): void {
  if (namespace === undefined || isDnsLabel(namespace)) return;
  throw new InputError([
    `--namespace ${showValue(namespace)} is not a DNS label; give the name of a namespace`,
  ]);
}

/** Validates documents by the schemas of their kinds, in their order. */
export async function checkDocuments(
  documents: readonly Document[],
  options: CheckOptions,
): Promise<{ readonly inputs: CustomResourceInput[]; readonly problems: Remark[] }> {
  const problems: Remark[] = [];
  const kinds = new KnownKinds(options.kinds, options.warn);
  const inputs: CustomResourceInput[] = [];
  for (const document of documents) {
    if (options.takes?.(document)) continue;
    const result = await readDocument(document, kinds, options);
    if (Array.isArray(result)) {
      const lines = result.map((problem) => [document.lineOf(problem.path), problem] as const);
      problems.push(...lines.sort(([a], [b]) => a - b).map(([, problem]) => remarkOn(document, problem)));
    } else {
      inputs.push(result);
    }
  }
  problems.push(...duplicates(inputs));
  return { inputs, problems };
}

function remarkOn(document: Document, { path, ...problem }: Problem): Remark {
  return { document, path, message: formatProblem({ ...problem, path: [...document.path, ...path] }) };
}

async function readDocument(
  document: Document,
  kinds: KnownKinds,
  { namespace: fallback, live: find }: CheckOptions,
): Promise<CustomResourceInput | Problem[]> {
  const { value } = document;
  if (!isMap(value)) {
    const message = `${showValue(value)} is not a Kubernetes object`;
    return [{ path: [], message, remedy: 'give a map with apiVersion, kind, metadata and spec' }];
  }
  const version = kinds.find(value);
  if (!('kind' in version)) return [version];
  const { kind } = version;
  const candidate = version.withDefaults(value) as {
    readonly apiVersion: string;
    readonly metadata?: unknown;
  };
  const { name, namespace: given } = (candidate.metadata ?? {}) as Readonly<Record<string, unknown>>;
  // As the API server does, the namespace of what is cluster-scoped is dropped.
  const namespace = kind.type.namespaced ? given || fallback : undefined;
  const isNamed =
    typeof name === 'string' &&
    isDnsSubdomain(name) &&
    (namespace === undefined || (typeof namespace === 'string' && isDnsLabel(namespace)));
  const type = { ...kind.type, apiVersion: candidate.apiVersion };
  const live = isNamed ? await find?.(type, objectKey(namespace, name)) : undefined;
  const problems = judge(version, candidate, live);
  if (problems.length > 0) return problems.map((problem) => nullInWords(problem, value));
  const stored = version.stored(candidate) as CustomResource;
  const { namespace: _, ...metadata } = stored.metadata;
  const cr = {
    ...stored,
    metadata: { ...metadata, ...(namespace ? { namespace: namespace as string } : {}) },
  };
  return { kind, cr, document, type, ...(live && { live }) };
}

/** Returns metadata as the API server reads them: null is absent, and empty text as the value of a label or an annotation. */
function withoutNulls(object: object): object {
  const { metadata } = object as { readonly metadata?: unknown };
  if (!isMap(metadata)) return object;
  const present = Object.entries(metadata).flatMap(([name, value]): [string, unknown][] => {
    if (value === null) return [];
    if (!isMap(value) || (name !== 'labels' && name !== 'annotations')) return [[name, value]];
    return [[name, Object.fromEntries(Object.entries(value).map(([key, text]) => [key, text ?? '']))]];
  });
  return { ...object, metadata: Object.fromEntries(present) };
}

/** A key without a value, such as one whose members are all commented out, is there, and counts as missing. */
function nullInWords(problem: Problem, value: unknown): Problem {
  if (problem.message !== MISSING || valueAt(value, problem.path.map(String)) !== null) return problem;
  return { ...problem, message: 'is null, which counts as missing', remedy: 'give it a value' };
}

/**
 * Names everything for which the API server would refuse a create, or an update where there is an object already.
 * @param candidate with its defaults
 * @param live the object as the API server has it, in the same version. With it, rules on the change (`oldSelf`) are
 *   judged too, and what was wrong before and stays as it is passes
 */
export function judge(version: KnownVersion, candidate: object, live?: object): Problem[] {
  // What was stored before the schema had a default has got it by the time it is compared.
  const found = version.validate(candidate, live && version.withDefaults(live));
  const { metadata } = candidate as { metadata?: unknown };
  if (!isMap(metadata)) return found;
  const known = new Set(found.map(({ path }) => JSON.stringify(path)));
  return [...checkNames(metadata).filter(({ path }) => !known.has(JSON.stringify(path))), ...found];
}

function duplicates(inputs: readonly CustomResourceInput[]): Remark[] {
  const first = new Map<string, CustomResourceInput>();
  return inputs.flatMap((input) => {
    const { kind, cr, document } = input;
    const file = fileName(kind.type, cr);
    const earlier = first.get(file);
    if (!earlier) {
      first.set(file, input);
      return [];
    }
    const path = ['metadata', 'name'];
    const where = placeOf(earlier.document, path).replace(': ', ', ');
    const message = `${kind.type.kind} ${showValue(cr.metadata.name)} is there already: ${where}`;
    const isSame = earlier.cr.metadata.namespace === cr.metadata.namespace;
    const remedy = isSame
      ? 'remove or rename one of them'
      : `give both a namespace: without one it would be written to ${file} as well`;
    return [remarkOn(document, { path, message, remedy })];
  });
}

interface KnownVersion {
  readonly kind: Kind;
  readonly validate: Validate;
  /** Returns the object as the API server would validate it. */
  withDefaults(value: object): object;
  /** Returns the validated object as the API server would store it. */
  stored(value: object): object;
}

/** Finds the kind of a document by group, version and kind. */
export class KnownKinds {
  private readonly versions = new Map<string, KnownVersion>();
  /** The kinds were listed in a problem: once is enough. */
  private isListed = false;

  /** @param warn takes a line for each kind that is asked for and has rules that aren't judged here */
  constructor(
    private readonly kinds: readonly Kind[],
    private readonly warn: (line: string) => void = () => undefined,
  ) {}

  /** Returns the version of a document, or what is wrong with its `apiVersion` and `kind`. */
  find(document: { readonly apiVersion?: unknown; readonly kind?: unknown }): KnownVersion | Problem {
    const { apiVersion, kind } = document;
    const listed = this.kinds.map(({ type }) => `${type.kind} (${type.apiVersion})`).join(', ') || 'none';
    const unusable = (field: string, value: unknown): Problem => {
      const message = value === undefined ? 'is missing' : `${showValue(value)} is not a name`;
      return { path: [field], message, remedy: `add it; the kinds are ${listed}` };
    };
    if (typeof apiVersion !== 'string' || apiVersion === '') return unusable('apiVersion', apiVersion);
    if (typeof kind !== 'string' || kind === '') return unusable('kind', kind);
    const identity = `${apiVersion}/${kind}`;
    const known = this.versions.get(identity);
    if (known) return known;
    const found = this.kinds.find(
      ({ crd: { spec } }) => spec.group === groupOf(apiVersion) && spec.names.kind === kind,
    );
    if (!found) {
      const message = `${kind} of ${apiVersion} is not a kind that is rendered here`;
      const ofGroup = this.kinds.filter(({ crd: { spec } }) => spec.group === groupOf(apiVersion));
      const near = suggest(
        kind,
        ofGroup.map(({ type }) => type.kind),
      );
      if (near !== undefined) return { path: ['kind'], message, remedy: `did you mean ${near}?` };
      const served = this.kinds.flatMap(({ crd: { spec } }) =>
        spec.names.kind === kind ? spec.versions.map(({ name }) => `${spec.group}/${name}`) : [],
      );
      if (served.length > 0)
        return {
          path: ['apiVersion'],
          message,
          remedy: `did you mean ${suggest(apiVersion, served) ?? served.join(' or ')}?`,
        };
      const remedy = this.isListed ? 'remove it' : `remove it; the kinds are ${listed}`;
      this.isListed = true;
      return { path: ['kind'], message, remedy };
    }
    const version = this.load(found, apiVersion, kind);
    if ('kind' in version) this.versions.set(identity, version);
    return version;
  }

  private load(kind: Kind, apiVersion: string, kindName: string): KnownVersion | Problem {
    const { spec } = kind.crd;
    const served = spec.versions.filter((candidate) => candidate.served);
    const version = served.find(({ name }) => apiVersion === `${spec.group}/${name}`);
    if (!version) {
      const names = served.map(({ name }) => `${spec.group}/${name}`).join(' or ');
      const message = `${apiVersion} is not a version in which ${kindName} is served`;
      return { path: ['apiVersion'], message, remedy: `write ${names}` };
    }
    const { conversion } = spec as { readonly conversion?: { readonly strategy?: string } };
    if (!version.storage && conversion?.strategy === 'Webhook') {
      const message = `${apiVersion} is converted by a webhook, which is not asked here`;
      return { path: ['apiVersion'], message, remedy: `write ${kind.type.apiVersion}` };
    }
    const schema = version.schema.openAPIV3Schema;
    const validate = validatorOf(version, kind.crd);
    const rules = unknownRules(schema).map(({ rule, why }) => `${showValue(rule)} (${why})`);
    if (rules.length > 0)
      this.warn(
        `${kindName} of ${apiVersion}: these rules use what only the API server knows, so it alone judges them: ${rules.join(', ')}`,
      );
    const stored = storedVersion(kind.crd);
    const converted = { apiVersion: kind.type.apiVersion };
    return {
      kind,
      validate,
      withDefaults: (value) => applyDefaults(withoutNulls(value), schema) as object,
      // Between versions without a webhook only `apiVersion` changes, and the defaults of the new one apply.
      stored: (value) =>
        version === stored
          ? value
          : (applyDefaults({ ...value, ...converted }, stored.schema.openAPIV3Schema) as object),
    };
  }
}
