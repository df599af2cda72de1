import { OperatorError } from '../contract/error.js';
import type { RenderedKind } from '../contract/kind.js';
import { describeRef, objectKey, refOf } from '../contract/object.js';
import type { AnyObject, CustomResource, ObjectMeta } from '../contract/object.js';
import { groupKind } from '../contract/resource.js';
import type { ResourceType } from '../contract/resource.js';
import { checkLengths } from './child-names.js';

/**
 * Holds what a construct made against what its kind declares.
 * @returns the objects; cluster-scoped ones without the namespace that cdk8s gives to everything in a chart
 * @throws OperatorError `RenderFailed`, `UndeclaredChild`, `DuplicateChild`, `NameTooLong` or `ForeignNamespace`
 */
export function checkChildren(
  kind: RenderedKind,
  cr: CustomResource,
  objects: readonly AnyObject[],
): AnyObject[] {
  const owner = describeRef({ ...refOf(cr), kind: kind.type.kind });
  const identities = new Set<string>();
  return objects.map((object) => {
    const type = declaredType(kind, owner, object);
    const child = type.namespaced ? object : withoutNamespace(object);
    const { name, namespace } = child.metadata;
    checkLengths(owner, cr.metadata.name, child);
    const identity = `${groupKind(child)} ${objectKey(namespace, name)}`;
    if (identities.has(identity)) {
      throw new OperatorError({
        reason: 'DuplicateChild',
        message: `${owner} renders ${describeRef(refOf(child))} twice; give the objects different names`,
      });
    }
    identities.add(identity);
    if (type.namespaced && kind.type.namespaced && namespace !== cr.metadata.namespace) {
      throw new OperatorError({
        reason: 'ForeignNamespace',
        message: `${owner} renders ${describeRef(refOf(child))}, which is in another namespace; children live in the namespace of their custom resource, leave it out`,
      });
    }
    return child;
  });
}

function declaredType(kind: RenderedKind, owner: string, object: AnyObject): ResourceType {
  const { apiVersion, kind: childKind, metadata } = object as Partial<AnyObject>;
  if (!isText(apiVersion) || !isText(childKind) || !isText(metadata?.name)) {
    throw new OperatorError({
      reason: 'RenderFailed',
      message: `${owner} renders an object without apiVersion, kind or metadata.name: ${JSON.stringify(object).slice(0, 200)}`,
    });
  }
  const type = kind.children.find((child) => child.apiVersion === apiVersion && child.kind === childKind);
  if (type) return type;
  const what = `${owner} renders ${describeRef(refOf(object))}`;
  const other = kind.children.find((child) => groupKind(child) === groupKind(object));
  throw new OperatorError({
    reason: 'UndeclaredChild',
    message: other
      ? `${what} of ${apiVersion}, of which kind ${kind.type.kind} declares ${other.apiVersion}; write that in the construct`
      : `${what}, which kind ${kind.type.kind} doesn't declare; add { apiVersion: '${apiVersion}', kind: '${childKind}' } to its children`,
  });
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function withoutNamespace(object: AnyObject): AnyObject {
  if (object.metadata.namespace === undefined) return object;
  const metadata: Partial<ObjectMeta> = { ...object.metadata };
  delete (metadata as { namespace?: string }).namespace;
  return { ...object, metadata: metadata as ObjectMeta };
}
