import { isDeepStrictEqual } from 'node:util';
import { pausedExplanation, unpaused } from '../../author/control.js';
import type { Explanation } from '../../contract/plan.js';
import { messageOf, OperatorError } from '../../contract/error.js';
import type { Kind } from '../../contract/kind.js';
import { describeRef, keyOf, objectId, refOf } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import type { ResourceType } from '../../contract/resource.js';
import { ApiError, classify } from '../../client/api-error.js';
import { Api } from '../../client/api.js';
import { DRY_RUN_UNSUPPORTED, visible } from '../../engine/preview/dry-run.js';
import { tryResource } from '../put.js';
import { preview } from '../../engine/preview/preview.js';
import type { GivenResource, ObjectPreview, Preview, PreviewProps } from '../../engine/preview/preview.js';
import { retried, TRIES } from '../../client/retry.js';
import type { Transport } from '../../client/transport.js';
import { readCustomResources } from '../../validate/custom-resource.js';
import type { CustomResourceInput } from '../../validate/custom-resource.js';
import { placeOf } from '../../validate/document.js';
import { InputError } from '../../validate/problem.js';
import { notInstalled } from '../cluster.js';
import type { ContextFor } from '../operators.js';

export interface Diff {
  readonly objects: readonly ObjectPreview[];
  readonly explanations: readonly Explanation[];
}

export interface CompareProps {
  readonly sources: readonly string[];
  readonly recursive: boolean;
  readonly kinds: readonly Kind[];
  readonly transport: Transport;
  /** Namespace of custom resources that name none. */
  readonly namespace: string;
  readonly contextFor: ContextFor;
  readonly warn: (line: string) => void;
}

/** A custom resource of a file, as it is in the cluster and as it would be. */
export interface Given extends GivenResource {
  readonly input: CustomResourceInput;
  /** Object when it was tried, in the version of the file. @default - none: the object would be new */
  readonly live?: AnyObject;
}

/**
 * Finds out by dry runs what custom resources would change in a cluster.
 * @throws InputError with their mistakes; ApiError where the cluster refuses
 */
export async function compare(props: CompareProps): Promise<Diff> {
  const resources = await readGiven(props);
  const { given, pauses } = afterPauses(resources, ({ input }) => input.kind);
  const { objects, explanations } = await previewGiven(given, props);
  return {
    objects: [...resources.map(resourcePreview), ...objects],
    explanations: [...pauses, ...explanations],
  };
}

/** Returns custom resources as they would be after a pause, so that what waits is seen, and what is printed of the paused ones. */
export function afterPauses<T extends GivenResource>(resources: readonly T[], kindOf: (given: T) => Kind) {
  const pauses: Explanation[] = [];
  const given = resources.map((each) => {
    const after = 'each' in kindOf(each).rendering ? unpaused(each.after) : undefined;
    if (after) pauses.push(pausedExplanation(each.after));
    return after ? { ...each, after } : each;
  });
  return { given, pauses };
}

/**
 * Reads custom resources, as the API server would store them.
 * @param refuse returns why a valid one is refused, and what to do about it
 * @throws as `compare`
 */
export async function readGiven(
  props: CompareProps,
  refuse: (input: CustomResourceInput) => string | undefined = () => undefined,
): Promise<Given[]> {
  const { transport } = props;
  const live = (type: ResourceType, key: string): Promise<AnyObject | undefined> =>
    new Api(transport).find(type, key).catch((error: unknown) => {
      throw error instanceof ApiError && error.kindNotServed ? notInstalled([type.kind]) : error;
    });
  const inputs = await readCustomResources({ ...props, live });
  const refused = inputs.flatMap((input) => {
    const why = refuse(input);
    return why === undefined ? [] : [`${placeOf(input.document, ['kind'])}: ${why}`];
  });
  if (refused.length > 0) throw new InputError(refused);
  const given: Given[] = [];
  for (const input of inputs) {
    const put = (wanted: AnyObject, over: AnyObject | undefined): Promise<AnyObject> =>
      tryResource(transport, input.type, wanted, over);
    try {
      const { stored: after, live } = await putOver(input, transport, put);
      const { apiVersion } = input.kind.type;
      given.push({ input, after, ...(live && { live, before: { ...live, apiVersion } }) });
    } catch (error) {
      refused.push(refusalOf(error, input));
    }
  }
  if (refused.length > 0) throw new InputError(refused);
  return given;
}

/** Returns why the API server doesn't take a custom resource. @throws the error where that isn't due to the file */
function refusalOf(error: unknown, { document }: CustomResourceInput): string {
  if (error instanceof OperatorError && error.reason === 'Conflict')
    return `${placeOf(document, error.path)}: ${error.message}`;
  if (error instanceof ApiError && classify(error, '').retry === 'onChange')
    return `${placeOf(document, [])}: the API server refuses it: ${messageOf(error)}`;
  if (error instanceof ApiError && error.objectIsGone)
    return `${placeOf(document, ['metadata', 'namespace'])}: ${messageOf(error)}; create it before, or name another`;
  throw error;
}

/**
 * Returns what would follow from custom resources.
 * @param blocking see `DryRunProps.blocking`
 * @throws as `compare`
 */
export async function previewGiven(
  given: readonly Given[],
  props: CompareProps,
  blocking = false,
): Promise<Diff> {
  const previews: Diff[] = [];
  for (const kind of new Set(given.map(({ input }) => input.kind))) {
    const ofKind = given.filter(({ input }) => input.kind === kind);
    previews.push(await previewKind(kind, ofKind, props, { blocking }));
  }
  const objects = previews.flatMap((each) => each.objects);
  // A custom resource of which nothing can be made, as where a policy forbids it.
  const problems = given.flatMap(({ input, after }) =>
    objects.flatMap(({ ref, error }) =>
      error && objectId(ref) === objectId(after)
        ? [`${placeOf(input.document, error.path)}: ${error.message}`]
        : [],
    ),
  );
  if (problems.length > 0) throw new InputError(problems);
  return { objects, explanations: previews.flatMap(({ explanations }) => explanations) };
}

/**
 * Puts a custom resource over the live one, and again over what that has become meanwhile, such as by a status.
 * @param check throws where what it has become must not be overwritten
 * @returns the answer in the stored version
 */
export async function putOver(
  { kind, cr, document, type, live: first }: CustomResourceInput,
  transport: Transport,
  put: (wanted: AnyObject, live: AnyObject | undefined) => Promise<AnyObject>,
  check: (live: AnyObject | undefined) => void = () => undefined,
): Promise<{ readonly stored: AnyObject; readonly live: AnyObject | undefined }> {
  const wanted = { ...(document.value as AnyObject), metadata: cr.metadata };
  const { apiVersion } = kind.type;
  let live = first;
  const attempt = async () => {
    checkPreconditions(wanted, live);
    const answer = await put(wanted, live);
    // One in another version doesn't have the defaults of the stored one.
    const stored = type.apiVersion === apiVersion ? answer : { ...answer, apiVersion, spec: cr.spec };
    return { stored, live };
  };
  return retried(TRIES.conflict, attempt, async (error) => {
    const isOutOfDate =
      error instanceof ApiError &&
      (error.conflict || error.wrongUid || (live !== undefined && error.objectIsGone));
    if (!isOutOfDate) return false;
    live = await new Api(transport).find(type, keyOf(cr));
    check(live);
    return true;
  });
}

/** @throws OperatorError `Conflict` where a file was made of another object, or of an earlier state, and says so */
function checkPreconditions(wanted: AnyObject, live: AnyObject | undefined): void {
  for (const field of ['uid', 'resourceVersion'] as const) {
    const given = wanted.metadata[field];
    if (!given || given === live?.metadata[field]) continue;
    const what = !live ? 'none is' : field === 'uid' ? 'another one is' : 'a later state of it is';
    const message =
      `metadata.${field}: ${describeRef(refOf(wanted))} is not the one of ${given}: ${what} there; ` +
      'make the change in what is there now, or remove the field';
    throw new OperatorError({ reason: 'Conflict', message, path: ['metadata', field] });
  }
}

export interface KindPreview extends Diff {
  /** Number of the custom resources that an operator watches. */
  readonly watched: number;
}

/** Returns what would follow from custom resources of one kind. @throws as `compare` */
export async function previewKind(
  kind: Kind,
  resources: readonly GivenResource[],
  { transport, contextFor, warn }: Pick<CompareProps, 'transport' | 'contextFor' | 'warn'>,
  options: Pick<PreviewProps, 'blocking' | 'ownedSelector'>,
): Promise<KindPreview> {
  const all = new Set(resources.flatMap(({ after }) => after.metadata.namespace ?? []));
  const context = await contextFor(kind, [...all]);
  const { namespaces = [...all], drift } = context;
  const unwatched = [...all].filter((namespace) => !namespaces.includes(namespace));
  for (const namespace of unwatched)
    warn(
      `no operator watches ${namespace}, only ${namespaces.join(', ')}: nothing would be made of what is there`,
    );
  const given = resources.filter(({ after }) => !unwatched.includes(after.metadata.namespace ?? ''));
  if (given.length === 0) return { objects: [], explanations: [], watched: 0 };
  const found = await preview({
    ...{ controllers: kind.controllers(context), given, transport, now: () => new Date() },
    ...options,
    ...{ ...(context.namespaces && { namespaces }), ...(drift && { drift }) },
  });
  const ids = new Set(given.map(({ after }) => objectId(after)));
  return { objects: found.objects, explanations: explanationsFor(ids, found), watched: given.length };
}

/** Returns the explanations of the custom resources that were given, and of others for which something changes by them. */
function explanationsFor(given: ReadonlySet<string>, found: Preview): Explanation[] {
  const before = new Map(found.explainedBefore.map((one) => [objectId(one.of), one]));
  const touched = ({ touches = [] }: Explanation): string[] => [...touches].sort();
  return found.explanations.flatMap((after) => {
    const { touches: _, ...explanation } = after;
    if (given.has(objectId(after.of))) return [explanation];
    const known = before.get(objectId(after.of));
    if (!known || isDeepStrictEqual(touched(known), touched(after))) return [];
    const summary = `${after.summary}; as things are, it ${known.summary}`;
    return [{ ...explanation, differs: true, summary }];
  });
}

/** Returns what would become of the custom resource itself. */
export function resourcePreview({ before, after }: Given): ObjectPreview {
  const base = { ref: refOf(after), takes: [], leaves: [] };
  if (!before) return { ...base, action: 'created', after };
  if (isDeepStrictEqual(visible(before), visible(after))) return { ...base, action: 'unchanged' };
  return { ...base, action: 'changed', before, after };
}

/** Reports whether anything would change, or would be refused. */
export function differs({ objects, explanations }: Diff): boolean {
  return objects.some(isDifference) || explanations.some((explanation) => explanation.differs);
}

export function isDifference({ action, leaves }: ObjectPreview): boolean {
  return action !== 'unchanged' || leaves.length > 0;
}

/** Reasons that are due to the cluster or the credentials, and not to what was given. */
const OF_CLUSTER: ReadonlySet<string> = new Set([
  ...['Forbidden', 'Unauthorized', 'Unreachable', 'ServerOverloaded', 'KindNotServed', 'NotFound'],
  DRY_RUN_UNSUPPORTED,
]);

/** Returns the messages of errors of the cluster, by which a diff is incomplete, each once. */
export function refusals(
  failures: readonly { readonly reason?: string; readonly message?: string }[],
): string[] {
  const ofCluster = failures.filter(({ reason = '' }) => OF_CLUSTER.has(reason));
  return [...new Set(ofCluster.map(({ message = '' }) => message))];
}
