import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { storedVersion } from '../contract/crd.js';
import type { StructuralSchema } from '../contract/crd.js';
import { checkOptions, listOf, optional } from '../author/definition.js';
import type { Option } from '../author/definition.js';
import { differences as deepDifferences, inAnotherWorld } from '../render/deterministic.js';
import { messageOf, OperatorError } from '../contract/error.js';
import type { Generated } from '../contract/generated.js';
import type { Kind, Rendered } from '../contract/kind.js';
import { isMap, objectId } from '../contract/object.js';
import { SECRET_CHECKSUM } from '../values/json.js';
import type { AnyObject, CustomResource } from '../contract/object.js';
import { judge, KnownKinds, readCustomResources } from '../validate/custom-resource.js';
import { applyDefaults } from '../validate/defaults.js';
import { formatProblem, InputError, showValue } from '../validate/problem.js';
import { offlineInputs } from '../render/references.js';
import type { OfflineInputs } from '../render/references.js';
import { render as renderOne } from '../render/render.js';
import type { Failure, Outcome } from './sweep.js';
import { ANY_SITE } from './trial.js';
import type { Sample, Swept } from './trial.js';

/**
 * Renders what the operator applies for a custom resource, for snapshots: in memory, without a cluster.
 *
 * **Guarantees.** The custom resource is judged by its CRD and gets its defaults, as the API server would do it. The same
 * custom resource gives the same objects, in the same order, with the members of their maps sorted.
 *
 * @param around the policy of the admin, the objects that the custom resource refers to, and the children that it observes
 *
 * **Errors.** `InvalidInput` with each mistake in the custom resource; those of the renderer; `InvalidInput` too for a
 * kind that renders several custom resources together. `InvalidDefinition` for another member of `around`.
 */
export function render(kind: Kind, cr: object, around: OfflineInputs = {}): AnyObject[] {
  checkOptions('render', around, AROUND, 'give { policy }, { references } or { observed }');
  if (!('each' in kind.rendering))
    throw new OperatorError({
      reason: 'InvalidInput',
      message: `${kind.type.kind} renders its custom resources together; render them with \`reconstruct synth\``,
    });
  const version = new KnownKinds([kind]).find(cr);
  if (!('kind' in version)) throw new InputError([formatProblem(version)]);
  const candidate = version.withDefaults(cr);
  const problems = judge(version, candidate);
  if (problems.length > 0) throw new InputError(problems.map(formatProblem));
  const { each } = kind.rendering;
  const stored = version.stored(candidate) as CustomResource;
  return renderOne(each, stored, offlineInputs(each, stored, around));
}

const objects = listOf(isMap);
const AROUND: readonly Option[] = [
  ['policy', optional(isMap), 'give the sections by the names of kinds: { widget: { ... } }'],
  ['references', optional(objects), 'give a list of objects'],
  ['observed', optional(objects), 'give a list of objects'],
];

/** A custom resource of a file. */
export type SampleObject = AnyObject & { readonly spec: Readonly<Record<string, unknown>> };

/**
 * Reads the custom resources of a kind from a YAML file.
 *
 * @returns them as they are written, at least one
 * @throws OperatorError `InvalidInput` with file, document, line and path of each mistake
 */
export async function readSamples(
  kind: Kind,
  file: string | URL,
): Promise<readonly [SampleObject, ...SampleObject[]]> {
  const path = file instanceof URL ? fileURLToPath(file) : file;
  const below = relative('.', path);
  const sources = [below.startsWith('..') ? path : below];
  const inputs = await readCustomResources({ sources, kinds: [kind] });
  return inputs.map(({ document }) => document.value) as [SampleObject, ...SampleObject[]];
}

/** Renders one custom resource, of which a spec that is valid is known at least. */
export function rendered(
  { kind, context, surroundings }: Pick<Swept, 'kind' | 'context' | 'surroundings'>,
  given: Pick<CustomResource, 'metadata' | 'spec'>,
  generated?: Generated,
): Rendered {
  const { apiVersion, kind: kindName } = kind.type;
  const schema = storedVersion(kind.crd).schema.openAPIV3Schema;
  const cr = applyDefaults({ ...given, apiVersion, kind: kindName }, schema) as CustomResource;
  if ('each' in kind.rendering) {
    const policy = context.policy === undefined ? undefined : { [kind.name]: context.policy };
    const { each } = kind.rendering;
    const namespace = cr.metadata.namespace ?? ANY_SITE.namespace;
    const references = surroundings?.({ ...ANY_SITE, namespace }).objects ?? [];
    const inputs = offlineInputs(each, cr, { references, ...(policy && { policy }) });
    return renderOne(each, cr, { ...inputs, ...(generated && { generated }) });
  }
  const { manifests, findings = [] } = kind.rendering.together([cr], context);
  const refused = findings.find(({ level }) => level === 'error');
  if (refused) throw new Error(refused.message);
  return manifests.flatMap(({ objects }) => [...objects]);
}

/** Returns what the samples render to; what can't be rendered is up to other checks. */
export function renderedSamples(swept: Swept): Rendered[] {
  return swept.samples.flatMap(({ spec }) => {
    try {
      return [rendered(swept, { metadata: { name: 'swept', namespace: 'sweep' }, spec })];
    } catch {
      return [];
    }
  });
}

/** Checks that every list of objects in the CRD has keys, so that several managers may write it. */
export function listKeys({ kind }: Pick<Swept, 'kind'>): Outcome {
  const lists = listsIn(storedVersion(kind.crd).schema.openAPIV3Schema, '');
  const failures = lists
    .filter(({ schema }) => schema.items?.type === 'object' && schema['x-kubernetes-list-type'] === undefined)
    .map(({ path }) => ({
      what: `${path} is a list of objects without keys, which an apply can only replace as a whole`,
      sequence: [
        `add "x-kubernetes-list-type: map" and "x-kubernetes-list-map-keys: [name]" to ${path} in the CRD, or "x-kubernetes-list-type: atomic" where that is meant`,
      ],
    }));
  return { tried: `${lists.length} lists of the schema`, failures };
}

interface SchemaList {
  readonly path: string;
  readonly schema: StructuralSchema;
}

function listsIn(schema: StructuralSchema, path: string): SchemaList[] {
  const { items, properties = {}, additionalProperties } = schema;
  return [
    ...Object.entries(properties).flatMap(([name, property]) =>
      listsIn(property, path === '' ? name : `${path}.${name}`),
    ),
    ...(typeof additionalProperties === 'object' ? listsIn(additionalProperties, `${path}.*`) : []),
    ...(items ? [{ path, schema }, ...listsIn(items, `${path}[]`)] : []),
  ];
}

let renderings = 0;

/** Checks that objects follow from the custom resource alone, and that those of two have different names. */
export function rendering(swept: Swept): Outcome {
  const { kind, samples } = swept;
  const failures = samples.flatMap((sample) => {
    try {
      return samples.flatMap((other) => impurities(sample, other));
    } catch (error) {
      return [{ what: messageOf(error), sequence: [`render ${JSON.stringify(sample.spec)}`] }];
    }
  });
  const rendersNone = failures.length === 0 && samples.every((sample) => made('none', sample).length === 0);
  return {
    ...{ tried: `${samples.length} samples`, failures },
    ...(rendersNone && { notApplicable: 'it renders no objects' }),
  };

  function made(name: string, { spec }: Sample): AnyObject[] {
    return rendered(swept, { metadata: { name, namespace: 'sweep' }, spec });
  }

  function impurities(sample: Sample, before: Sample): Failure[] {
    // Names that no construct has seen before, so that memory by name shows.
    const [first, second] = [`first-${++renderings}`, `other-${renderings}`];
    const alone = made(first, sample);
    made(second, before);
    const after = made(second, sample);
    const later = inAnotherWorld(() => made(first, sample));
    const turned = made(first, { ...sample, spec: reversed(sample.spec) as Sample['spec'] });
    // Under another name, a hash of the name differs too.
    const alike = (name: string, objects: AnyObject[]): unknown => {
      const digests = digestsOf((other) => made(other, sample), name, objects);
      return anonymous(objects, name, digests);
    };
    const exact = (objects: AnyObject[]): unknown => anonymous(objects, first, []);
    const shown = JSON.stringify(sample.spec);
    return [
      ...difference('on another day, with other random numbers', exact(alone), exact(later), [
        `render ${shown}`,
        'render it again a year later',
      ]),
      ...difference('after another spec', alike(first, alone), alike(second, after), [
        `render ${JSON.stringify(before.spec)}`,
        `render ${shown} under the same name`,
      ]),
      ...difference('with the members of its maps in another order', exact(alone), exact(turned), [
        `render ${shown}`,
        'render it with the members of its maps in reverse order',
      ]),
      // Custom resources that are rendered together may share objects.
      ...('each' in kind.rendering ? collision() : []),
    ];
  }

  function collision(): Failure[] {
    const [sample] = samples;
    const [one, two] = longNames((name) => made(name, sample));
    const taken = new Set(made(one, sample).map(objectId));
    const twice = made(two, sample).find((object) => taken.has(objectId(object)));
    if (!twice) return [];
    const what = `${twice.kind} ${twice.metadata.name} is made for two custom resources: put the whole name of the custom resource into its name`;
    return [{ what, sequence: [`render it under the name ${one}`, `render it under the name ${two}`] }];
  }
}

/** Returns names as long as a label's value, or as the kind allows, that differ at the very end. */
function longNames(made: (name: string) => unknown): readonly [string, string] {
  for (const length of [63, 52, 40]) {
    const start = 'long-name-'.repeat(7).slice(0, length - 1);
    try {
      made(`${start}a`);
      return [`${start}a`, `${start}b`];
    } catch (error) {
      if (!(error instanceof OperatorError && error.reason === 'NameTooLong')) throw error;
    }
  }
  return ['name-a', 'name-b'];
}

function difference(when: string, expected: unknown, found: unknown, sequence: readonly string[]): Failure[] {
  const [first] = differences(expected, found);
  return first ? [{ what: `rendered ${when}, ${first.text}`, sequence }] : [];
}

function anonymous(objects: readonly AnyObject[], name: string, digests: readonly string[]): unknown {
  const general = (text: string): string => withoutDigests(text, digests).replaceAll(name, '<name>');
  return byId(objects.map((object) => [general(objectId(object)), general(JSON.stringify(object))]));
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

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (!isMap(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toReversed()
      .map(([key, member]) => [key, reversed(member)]),
  );
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
    text: `${path.join('.')} is ${[second, first].map((value) => (value === undefined ? 'absent' : showValue(value))).join(' instead of ')}`,
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
  const found = differences(objects, made(other)).flatMap(({ expected, found: now }) => {
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
