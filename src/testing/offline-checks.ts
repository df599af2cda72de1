import { storedVersion } from '../contract/crd.js';
import type { StructuralSchema } from '../contract/crd.js';
import { messageOf, OperatorError } from '../contract/error.js';
import { objectId } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { withShiftedDateAndRandom } from '../render/renderer.js';
import { schemasBelow } from '../validate/unchanged.js';
import { byId, decoded, differences, digestsOf, withoutDigests } from './compare.js';
import type { Failure, Outcome } from './report.js';
import { isContributed, rendered } from './tested-kind.js';
import type { Sample, TestedKind } from './tested-kind.js';
import { isMap } from '../values/json.js';

/** Checks that every list of objects in the CRD has keys, so that several managers may write it. */
export function listKeys({ kind }: Pick<TestedKind, 'kind'>): Outcome {
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
  const below = Object.entries(schemasBelow(schema)).flatMap(([step, inner]) =>
    listsIn(inner, step === '[]' || path === '' ? path + step : `${path}.${step}`),
  );
  return [...(schema.items ? [{ path, schema }] : []), ...below];
}

let renderings = 0;

/** Checks that objects follow from the custom resource alone, and that those of two have different names. */
export function rendering(tested: TestedKind): Outcome {
  const { kind, samples } = tested;
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

  function made(name: string, { spec, ...meta }: Sample): AnyObject[] {
    return rendered(tested, { metadata: { name, namespace: 'sweep', ...meta }, spec });
  }

  function impurities(sample: Sample, before: Sample): Failure[] {
    // Names that no construct has seen before, so that memory by name shows.
    const [first, second] = [`first-${++renderings}`, `other-${renderings}`];
    const alone = made(first, sample);
    made(second, before);
    const after = made(second, sample);
    const later = withShiftedDateAndRandom(() => made(first, sample));
    const turned = made(first, { ...sample, spec: reversed(sample.spec) as Sample['spec'] });
    // Under another name, a hash of the name differs too.
    const alike = (name: string, objects: AnyObject[]): unknown => {
      const digests = digestsOf((other) => made(other, sample), name, objects);
      return anonymous(decoded(objects), name, digests);
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
    const twice = made(two, sample).find(
      (object) => taken.has(objectId(object)) && !isContributed(tested, object),
    );
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

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (!isMap(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toReversed()
      .map(([key, member]) => [key, reversed(member)]),
  );
}
