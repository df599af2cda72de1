import { storedVersion } from '../../contract/crd.js';
import type { StructuralSchema } from '../../contract/crd.js';
import { messageOf, OperatorError } from '../../contract/error.js';
import { objectId } from '../../contract/object.js';
import type { AnyObject, CustomResource } from '../../contract/object.js';
import { applyDefaults } from '../../synth/defaults.js';
import { render } from '../../synth/render.js';
import { inAnotherWorld } from '../../contract/deterministic.js';
import { digestsOf, withoutDigests, differences } from './normal.js';
import { shortest } from './outcome.js';
import type { Failure, Outcome } from './outcome.js';
import type { Sample, Swept } from './stand.js';
import { policyFor } from './stand.js';

/** Every list of objects in the spec says what its items are known by, so that several may edit it. */
export function listKeys({ kind }: Swept): Outcome {
  const { openAPIV3Schema } = storedVersion(kind.crd).schema;
  const lists = listsIn(openAPIV3Schema, '');
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

function listsIn(
  schema: StructuralSchema,
  path: string,
): { readonly path: string; readonly schema: StructuralSchema }[] {
  const inner = Object.entries(schema.properties ?? {}).flatMap(([name, property]) =>
    listsIn(property, path === '' ? name : `${path}.${name}`),
  );
  const values =
    typeof schema.additionalProperties === 'object' ? listsIn(schema.additionalProperties, `${path}.*`) : [];
  const items = schema.items ? [{ path, schema }, ...listsIn(schema.items, `${path}[]`)] : [];
  return [...inner, ...values, ...items];
}

let rendered = 0;

/** The objects follow from the custom resource alone, and those of two have different names. */
export function rendering({ kind, samples, context }: Swept): Outcome {
  const failures = samples.flatMap((sample) => {
    try {
      return samples.flatMap((other) => impurities(sample, other));
    } catch (error) {
      return [{ what: messageOf(error), sequence: [`render ${JSON.stringify(sample.spec)}`] }];
    }
  });
  const makesNone = failures.length === 0 && samples.every((sample) => made('none', sample).length === 0);
  return {
    ...{ tried: `${samples.length} samples`, failures: shortest(failures) },
    ...(makesNone && { notApplicable: 'it renders no objects' }),
  };

  function made(name: string, sample: Sample): AnyObject[] {
    const cr = customResource(name, sample);
    if ('each' in kind.rendering) return render(kind.rendering.each, cr, policyFor(kind, context));
    const { manifests, findings = [] } = kind.rendering.together([cr], context);
    const refused = findings.find(({ level }) => level === 'error');
    if (refused) throw new Error(refused.message);
    return manifests.flatMap(({ objects }) => [...objects]);
  }

  function impurities(sample: Sample, before: Sample): Failure[] {
    const shown = JSON.stringify(sample.spec);
    // A name that no construct has seen before, nor will again.
    const [first, second] = [`first-${++rendered}`, `other-${rendered}`];
    const exact = (objects: AnyObject[]): unknown => named(objects, first, []);
    // Between two names, beside what is made of them.
    const alike = (name: string, objects: AnyObject[]): unknown =>
      named(
        objects,
        name,
        digestsOf((other) => made(other, sample), name, objects),
      );
    const alone = made(first, sample);
    made(second, before);
    const after = made(second, sample);
    const later = inAnotherWorld(() => made(first, sample));
    const turned = made(first, { ...sample, spec: reversed(sample.spec) as Sample['spec'] });
    return [
      ...difference(exact(alone), exact(later), 'on another day, with other random numbers', [
        `render ${shown}`,
        'render it again a year later',
      ]),
      ...difference(alike(first, alone), alike(second, after), 'after another spec', [
        `render ${JSON.stringify(before.spec)}`,
        `render ${shown} under the same name`,
      ]),
      ...difference(exact(alone), exact(turned), 'with the members of its maps in another order', [
        `render ${shown}`,
        'render it with the members of its maps in reverse order',
      ]),
      // What is rendered together shares objects, or may.
      ...('each' in kind.rendering ? collision() : []),
    ];
  }

  function customResource(name: string, { spec }: Sample): CustomResource {
    const { apiVersion, kind: kindName } = kind.type;
    const schema = storedVersion(kind.crd).schema.openAPIV3Schema;
    return applyDefaults(
      { apiVersion, kind: kindName, metadata: { name, namespace: 'sweep' }, spec },
      schema,
    ) as CustomResource;
  }

  function collision(): Failure[] {
    const [one, two] = longNames((name) => made(name, samples[0]));
    const taken = new Set(made(one, samples[0]).map(objectId));
    const twice = made(two, samples[0]).find((object) => taken.has(objectId(object)));
    if (!twice) return [];
    return [
      {
        what: `${twice.kind} ${twice.metadata.name} is made for two custom resources: put the whole name of the custom resource into its name`,
        sequence: [`render it under the name ${one}`, `render it under the name ${two}`],
      },
    ];
  }
}

/** As long as the value of a label may be, or as the kind can have it, and different at the very end. */
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

function difference(expected: unknown, found: unknown, when: string, sequence: readonly string[]): Failure[] {
  const [line] = differences(expected, found);
  return line === undefined ? [] : [{ what: `rendered ${when}, ${line}`, sequence }];
}

function named(objects: readonly AnyObject[], name: string, digests: readonly string[]): unknown {
  return Object.fromEntries(
    objects.map((object) => [
      objectId(object).replaceAll(name, '<name>'),
      JSON.parse(withoutDigests(JSON.stringify(object), digests).replaceAll(name, '<name>')) as unknown,
    ]),
  );
}

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, member]) => [key, reversed(member)]),
  );
}
