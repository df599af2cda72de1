import { OperatorError } from '../contract/error.js';
import type { RenderedKind } from '../contract/kind.js';
import { NAMESPACE } from '../contract/names.js';
import { controllerOf, describeRef, objectId, refOf } from '../contract/object.js';
import type { AnyObject, CustomResource } from '../contract/object.js';
import { groupKind } from '../contract/resource.js';
import type { ResourceType } from '../contract/resource.js';

/** Names a custom resource in messages. */
export function ownerOf({ type: { kind } }: RenderedKind, cr: CustomResource): string {
  return describeRef({ ...refOf(cr), kind });
}

/**
 * Compares what a construct made with what its kind declares.
 * @returns the objects; cluster-scoped ones without the namespace that cdk8s gives to everything in a chart
 */
export function checkChildren(
  kind: RenderedKind,
  cr: CustomResource,
  objects: readonly AnyObject[],
): AnyObject[] {
  const owner = ownerOf(kind, cr);
  const ids = new Set(kind.generated && [objectId(kind.generated.secretOf(cr))]);
  return objects.map((object) => {
    const type = declaredType(kind, owner, object);
    const { namespace: _, ...metadata } = object.metadata;
    const child: AnyObject = type.namespaced || !object.metadata.namespace ? object : { ...object, metadata };
    const what = `${owner} renders ${describeRef(refOf(child))}`;
    const { name, namespace } = child.metadata;
    if (/^\.{1,2}$|[/%]/.test(name) || (namespace !== undefined && !NAMESPACE.test(namespace)))
      throw refusal(
        'InvalidName',
        `${what}, whose name is "." or "..", or has "/" or "%", or whose namespace is none; let the CRD refuse it where it comes from the spec`,
      );
    if (type.namespaced && kind.type.namespaced && child.metadata.namespace !== cr.metadata.namespace)
      throw refusal(
        'ForeignNamespace',
        `${what}, which is in another namespace; children live in the namespace of their custom resource, leave it out`,
      );
    // Preconditions: the creation with a UID, and each change with an old version, would be a conflict for ever.
    const set = (['uid', 'resourceVersion'] as const).find((field) => child.metadata[field]);
    if (set)
      throw refusal('RenderFailed', `${what} with metadata.${set}, which the API server sets; leave it out`);
    const other = controllerOf(child);
    if (other)
      throw refusal(
        'RenderFailed',
        `${what} with ${other.kind} ${other.name} as its controller in metadata.ownerReferences, where the operator adds ${owner}; leave that out`,
      );
    checkLengths(what, cr.metadata.name, child);
    const id = objectId(child);
    if (ids.has(id)) throw refusal('DuplicateChild', `${what} twice; give the objects different names`);
    ids.add(id);
    return child;
  });
}

function declaredType(kind: RenderedKind, owner: string, object: AnyObject): ResourceType {
  const { apiVersion, kind: childKind, metadata } = object as Partial<AnyObject>;
  if (![apiVersion, childKind, metadata?.name].every((text) => typeof text === 'string' && text !== ''))
    throw refusal(
      'RenderFailed',
      `${owner} renders an object without apiVersion, kind or metadata.name: ${JSON.stringify({ apiVersion, kind: childKind, metadata: { name: metadata?.name } })}`,
    );
  const type = kind.children.find((child) => child.apiVersion === apiVersion && child.kind === childKind);
  if (type) return type;
  const what = `${owner} renders ${describeRef(refOf(object))}`;
  const other = kind.children.find((child) => groupKind(child) === groupKind(object));
  throw refusal(
    'UndeclaredChild',
    other
      ? `${what} of ${apiVersion}, of which kind ${kind.type.kind} declares ${other.apiVersion}; write that in the construct`
      : `${what}, which kind ${kind.type.kind} doesn't declare; add { apiVersion: '${apiVersion}', kind: '${childKind}' } to its children`,
  );
}

const LONGEST_LABEL = 63;
const LONGEST_NAME = 253;
/**
 * A CronJob's Jobs get eleven characters more.
 * @see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/
 */
const LONGEST_NAMES: Readonly<Record<string, number>> = { Service: 63, 'Job.batch': 63, 'CronJob.batch': 52 };

/**
 * Refuses a name or a label that the API server would refuse, since it is made of the custom resource's and became too long.
 * @throws OperatorError `NameTooLong`, with the rule by which the CRD keeps such names out
 */
function checkLengths(what: string, ownersName: string, object: AnyObject): void {
  const { name, labels = {} } = object.metadata;
  const texts = [
    ['name', name, LONGEST_NAMES[groupKind(object)] ?? LONGEST_NAME] as const,
    ...Object.entries(labels).map(([label, text]) => [`label ${label}`, text, LONGEST_LABEL] as const),
  ];
  const long = texts.find(([, text, most]) => text.length > most);
  if (!long) return;
  // Characters that the name of the custom resource may have, by each text that is made of it.
  const lengths = texts.map(([, text, most]) => {
    const times = text.split(ownersName).length - 1;
    return times === 0 ? LONGEST_NAME : Math.floor((most - text.length) / times) + ownersName.length;
  });
  const [field, text, most] = long;
  const shortest = text.includes(ownersName) ? Math.min(...lengths) : 0;
  const rule = `[{ rule: 'self.metadata.name.size() <= ${shortest}' }]`;
  throw refusal(
    'NameTooLong',
    `${what}, whose ${field} has ${text.length} characters, of which ${field === 'name' ? `a ${object.kind}` : 'a label'} may have ${most}; make it shorter in the construct` +
      (shortest > 0 ? `, or let the CRD refuse it, with rules: ${rule} in defineCrd` : ''),
  );
}

function refusal(reason: string, message: string): OperatorError {
  return new OperatorError({ reason, message });
}
