import { OperatorError } from '../contract/error.js';
import type { RenderedKind } from '../contract/kind.js';
import { describeRef, objectKey, refOf } from '../contract/object.js';
import type { AnyObject, CustomResource, ObjectMeta } from '../contract/object.js';
import { groupKind } from '../contract/resource.js';
import type { ResourceType } from '../contract/resource.js';

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

const LONGEST_LABEL = 63;
const LONGEST_NAME = 253;
/**
 * A CronJob's Jobs get eleven characters more.
 * @see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/
 */
const LONGEST_NAMES: Readonly<Record<string, number>> = { Service: 63, 'Job.batch': 63, 'CronJob.batch': 52 };

/**
 * A name or a label that the API server would refuse, since it is made of the custom resource's and became too long.
 * @param owner names the custom resource, for the message
 * @param ownersName its name alone
 * @throws OperatorError `NameTooLong`
 */
function checkLengths(owner: string, ownersName: string, object: AnyObject): void {
  const { name, labels = {} } = object.metadata;
  const most = LONGEST_NAMES[groupKind(object)] ?? LONGEST_NAME;
  const texts: readonly Text[] = [
    { what: 'name', of: `a ${object.kind}`, text: name, most, remedy: 'make it shorter in the construct' },
    ...Object.entries(labels).map(([label, text]) => ({
      ...{ what: `label ${label}`, of: 'a label', text, most: LONGEST_LABEL },
      remedy: 'give the label another value',
    })),
  ];
  const long = texts.find((one) => one.text.length > one.most);
  if (!long) return;
  const what = `${owner} renders ${describeRef(refOf(object))}, whose ${long.what} has ${long.text.length} characters`;
  throw new OperatorError({
    reason: 'NameTooLong',
    message: `${what}, of which ${long.of} may have ${long.most}; ${long.remedy}${ruleFor(long, texts, ownersName)}`,
  });
}

/** What may be too long. */
interface Text {
  readonly what: string;
  readonly of: string;
  readonly text: string;
  /** How many characters it may have. */
  readonly most: number;
  readonly remedy: string;
}

/** How the CRD keeps such names out; nothing where the name of the custom resource isn't at fault. */
function ruleFor(long: Text, texts: readonly Text[], ownersName: string): string {
  if (!long.text.includes(ownersName) || longestOwner(long, ownersName) < 1) return '';
  const most = Math.min(...texts.map((text) => longestOwner(text, ownersName)));
  const rule = `[{ rule: 'self.metadata.name.size() <= ${most}' }]`;
  return `, or let the CRD refuse it: with rules: ${rule} in defineCrd, or "x-kubernetes-validations": ${rule} at the top of the schema`;
}

/** How many characters the custom resource's name may have, where a text is made of it. */
function longestOwner({ text, most }: Text, ownersName: string): number {
  const times = text.split(ownersName).length - 1;
  return times === 0 ? LONGEST_NAME : Math.floor((most - text.length) / times) + ownersName.length;
}
