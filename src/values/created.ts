import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { OperatorError } from '../contract/error.js';
import { areSiblings, CREATED_ANNOTATION } from '../contract/names.js';
import { describeRef } from '../contract/object.js';
import type { AnyObject, KubernetesObject } from '../contract/object.js';
import { canonicalJson, isMap } from './json.js';
import { fieldsBelow, parseFieldValues, stepsOf, valuesAt, withValue } from './fields.js';
import type { FieldValues } from './fields.js';
import { isAppliedBy, managedFieldsOf, MAX_CREATED, partOf } from './projections.js';

/** Maximum number of characters of the values: the API server stores no larger object, and every writer may record anything. */
const MAX_INFLATED = 1_500_000;

/** Returns the values that an object says it was created with; undefined where it says nothing that can be read. */
export function createdOf({ metadata }: KubernetesObject): FieldValues | undefined {
  const text = metadata.annotations?.[CREATED_ANNOTATION];
  if (text === undefined) return undefined;
  try {
    const json = inflateRawSync(Buffer.from(text, 'base64'), { maxOutputLength: MAX_INFLATED });
    return parseFieldValues(json.toString());
  } catch {
    return undefined;
  }
}

/** Reports whether an object was created with what is rendered for it; true where that isn't recorded. */
export function wasCreatedAs(
  object: KubernetesObject,
  rendered: AnyObject,
  paths: readonly string[],
): boolean {
  const values = createdOf(object) ?? {};
  return paths.every((path) => {
    const value = values[path];
    return value === undefined || canonicalJson(value) === canonicalJson(valuesAt(rendered, path));
  });
}

/**
 * Returns what is applied in place of a rendering: some of its fields as they were created, which it records, and the others as rendered.
 * @param values the fields as they were created; what is missing there is created now
 * @param text the record, where it has all of them
 * @throws OperatorError `CreateOnlyTooLarge`
 */
export function withCreated(
  rendered: AnyObject,
  paths: readonly string[],
  values: FieldValues = {},
  text?: string,
): AnyObject {
  const all = Object.fromEntries(paths.map((path) => [path, values[path] ?? valuesAt(rendered, path)]));
  let object = rendered;
  for (const path of paths) object = withValue(object, stepsOf(path), all[path] ?? []) as AnyObject;
  const record = text ?? deflateRawSync(canonicalJson(all)).toString('base64');
  if (record.length > MAX_CREATED)
    throw new OperatorError({
      reason: 'CreateOnlyTooLarge',
      message: `${describeRef(rendered)}: the record of ${paths.join(', ')} has ${record.length} characters, compressed, and its annotation takes ${MAX_CREATED}; name less in createOnly, or move content to a ConfigMap`,
    });
  const annotations = { ...object.metadata.annotations, [CREATED_ANNOTATION]: record };
  return { ...object, metadata: { ...object.metadata, annotations } };
}

/** Returns what is applied in place of a rendering, by the record of the object that is there; the rendering, where that has none. */
export function asRecorded(rendered: AnyObject, known: AnyObject): AnyObject {
  const values = createdOf(known);
  const text = known.metadata.annotations?.[CREATED_ANNOTATION];
  return values ? withCreated(rendered, Object.keys(values), values, text) : rendered;
}

/**
 * Returns what fields of a live object seem to be created with, where no record that is ours says it: what its record says, or what
 * is rendered now, if the object has that; else what we have applied of them.
 */
export function presentValues(
  live: AnyObject,
  rendered: AnyObject,
  paths: readonly string[],
  fieldManager: string,
): FieldValues {
  const recorded = createdOf(live) ?? {};
  const ours = managedFieldsOf(live).find(({ manager = '', ...entry }) => {
    return areSiblings(manager, fieldManager) && isAppliedBy(manager, { manager, ...entry });
  });
  return Object.fromEntries(
    paths.flatMap((path): (readonly [string, readonly unknown[]])[] => {
      const present = valuesAt(live, path);
      for (const values of [recorded[path], valuesAt(rendered, path)])
        if (values && isWithin(values, present)) return [[path, values]];
      const owned = fieldsBelow(ours?.fieldsV1, stepsOf(path));
      return owned && present.length > 0 ? [[path, [partOf(present[0], owned)]]] : [];
    }),
  );
}

/** Returns an object without the fields that it has as its record says: what they are follows from when it was created. */
export function withoutCreated(object: AnyObject): AnyObject {
  const paths = Object.entries(createdOf(object) ?? {}).filter(([path, values]) =>
    isWithin(values, valuesAt(object, path)),
  );
  const without = (of: unknown, prefix = ''): unknown =>
    paths.reduce(
      (left, [path]) =>
        withValue(
          left,
          stepsOf(path).map((step) => prefix + step),
          [],
        ),
      of,
    );
  const managedFields = managedFieldsOf(object).map((entry) => ({
    ...entry,
    fieldsV1: without(entry.fieldsV1, 'f:'),
  }));
  const { metadata, ...content } = without(object) as AnyObject;
  return { ...content, metadata: { ...metadata, managedFields } as AnyObject['metadata'] };
}

/** Reports whether a live value has all of another: it may have more members in maps, such as defaults. */
function isWithin(value: unknown, live: unknown): boolean {
  if (Array.isArray(value) && Array.isArray(live))
    return value.length === live.length && value.every((item, index) => isWithin(item, live[index]));
  if (isMap(value) && isMap(live))
    return Object.keys(value).every((name) => Object.hasOwn(live, name) && isWithin(value[name], live[name]));
  return value === live;
}
