import type { RenderedKind, RenderInputs, Find } from '../contract/kind.js';
import { byName, objectId } from '../contract/object.js';
import type { AnyObject, CustomResource } from '../contract/object.js';
import { groupKind } from '../contract/resource.js';
import { parseDocuments, placeOf, readSources } from '../validate/document.js';
import type { Document } from '../validate/document.js';
import { hasFormat } from '../validate/formats.js';
import { formatPath } from '../values/path.js';
import { InputError } from '../validate/problem.js';
import type { Path } from '../validate/problem.js';
import { withEncodedSecret } from './synthesize.js';
import { isMap } from '../values/json.js';
import { parseLabelSelector, selects } from '../values/label-selector.js';

/**
 * Reads the objects that custom resources may refer to, of whatever types.
 * @throws InputError with the place of everything that is no object, and of values of Secrets that aren't base64
 */
export async function readReferences(sources: readonly string[], recursive: boolean): Promise<AnyObject[]> {
  const problems: string[] = [];
  const read = await readSources({ sources, recursive });
  const documents = read.flatMap((source) => parseDocuments(source, (problem) => problems.push(problem)));
  return objectsOf(documents, problems);
}

/** Returns the objects of documents. @throws InputError as `readReferences`, and with the problems so far */
export function objectsOf(documents: readonly Document[], problems: string[] = []): AnyObject[] {
  const objects = documents.flatMap((document) => {
    const { value } = document;
    if (!isObject(value)) {
      problems.push(`${placeOf(document, [])}: no object; give apiVersion, kind and metadata.name`);
      return [];
    }
    for (const path of undecodable(value)) {
      const remedy = 'encode it, or give it as text in stringData';
      problems.push(`${placeOf(document, path)}: ${formatPath(path)}: isn't base64; ${remedy}`);
    }
    return [value];
  });
  if (problems.length > 0) throw new InputError(problems);
  return objects;
}

/** Reports whether a value has what identifies an object. */
export function isObject(value: unknown): value is AnyObject {
  if (!isMap(value) || !isMap(value.metadata)) return false;
  return [value.apiVersion, value.kind, value.metadata.name].every((text) => typeof text === 'string');
}

/** Returns the paths of a Secret's values that the API server would refuse; it passes over line breaks. */
function undecodable({ apiVersion, kind, data }: AnyObject): Path[] {
  if (apiVersion !== 'v1' || kind !== 'Secret' || !isMap(data)) return [];
  const isBase64 = (value: unknown): boolean =>
    typeof value === 'string' && hasFormat(value.replaceAll(/[\r\n]/g, ''), 'byte');
  return Object.keys(data)
    .filter((key) => (data[key] ?? '') !== '' && !isBase64(data[key]))
    .map((key) => ['data', key]);
}

/** Returns what a custom resource is rendered from, but for itself; it may refer to itself. */
export function offlineInputs(
  { references }: RenderedKind,
  cr: CustomResource,
  { references: objects = [], ...inputs }: OfflineInputs,
): RenderInputs {
  return {
    ...inputs,
    ...(references && {
      references:
        references.resolve(cr, findAmong([...objects, cr as CustomResource & AnyObject]), true) ?? {},
    }),
  };
}

/** Inputs of a rendering where there is no cluster. */
export interface OfflineInputs extends Omit<RenderInputs, 'references' | 'generated'> {
  /** Objects that it may refer to; one without a namespace is in whatever namespace is asked for. @default - none */
  readonly references?: readonly AnyObject[];
}

function findAmong(objects: readonly AnyObject[]): Find {
  return ({ type, keep }, { namespace, name, selector }) => {
    const wanted = selector === undefined ? {} : parseLabelSelector(selector);
    const found = objects.filter(
      (object) =>
        groupKind(object) === groupKind(type) &&
        (namespace === '*' || (object.metadata.namespace ?? namespace) === namespace) &&
        (name === undefined || object.metadata.name === name) &&
        selects(wanted, object.metadata.labels ?? {}),
    );
    const placed = found.map((object) => {
      const isPlaced = namespace !== undefined && namespace !== '*';
      const metadata = { ...object.metadata, ...(isPlaced && { namespace }) };
      return keep(withEncodedSecret({ ...object, metadata }));
    });
    // The first of those that are given twice.
    const distinct = new Map(placed.reverse().map((object) => [objectId(object), object]));
    const named = objects.filter(
      (object) => groupKind(object) === groupKind(type) && object.metadata.name === name,
    );
    const elsewhere = [...new Set(named.flatMap((object) => object.metadata.namespace ?? []))].sort();
    return {
      objects: byName([...distinct.values()]),
      ...(elsewhere.length > 0 && {
        why: `one of this name is given in the namespace ${elsewhere.join(', ')}`,
      }),
    };
  };
}
