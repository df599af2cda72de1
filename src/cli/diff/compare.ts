import { isDeepStrictEqual } from 'node:util';
import { pausedExplanation, unpaused } from '../../author/status.js';
import type { Explanation } from '../../contract/plan.js';
import type { Kind } from '../../contract/kind.js';
import { objectId, refOf } from '../../contract/object.js';
import { DRY_RUN_UNSUPPORTED, visible } from '../../engine/preview/dry-run.js';
import { preview } from '../../engine/preview/preview.js';
import type { GivenResource, ObjectPreview, Preview, PreviewProps } from '../../engine/preview/preview.js';
import type { Transport } from '../../client/transport.js';
import { render } from '../../render/renderer.js';
import type { ReadOptions } from '../../validate/custom-resource.js';
import { placeOf } from '../../validate/document.js';
import { InputError } from '../../validate/problem.js';
import { readGiven } from '../given.js';
import type { Given } from '../given.js';
import { operatorContext } from '../operators.js';
import type { ContextFor, OperatorContextProps } from '../operators.js';
import { kindFlagValues } from '../options.js';
import type { SharedOptions } from '../options.js';
import { printError, warn } from '../output.js';
import { adminFiles, sectionsParser } from '../admin-file.js';

export interface Diff {
  readonly objects: readonly ObjectPreview[];
  readonly explanations: readonly Explanation[];
}

/** Connection and context of a preview. */
export interface PreviewMeans {
  readonly transport: Transport;
  readonly contextFor: ContextFor;
  readonly warn: (line: string) => void;
}

/** Returns the context of the installed operator, as far as the options don't give it. @throws CliError for a file that can't be used */
export async function contextBy(
  options: SharedOptions,
): Promise<(cluster: OperatorContextProps['cluster']) => ContextFor> {
  const files = await adminFiles(options);
  const { operatorNamespace, watchNamespace: watchNamespaces } = options;
  return (cluster) =>
    operatorContext({
      ...{ cluster, render, warn, note: printError, files, operatorNamespace, watchNamespaces },
      flags: kindFlagValues(options),
      parse: async (...text) => (await sectionsParser(options))(...text),
    });
}

/**
 * Finds out by dry runs what custom resources would change in a cluster.
 * @throws InputError with their mistakes; ApiError where the cluster refuses
 */
export async function compare(props: PreviewMeans & ReadOptions): Promise<Diff> {
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
 * Returns what would follow from custom resources.
 * @param blocking see `DryRunProps.blocking`
 * @throws as `compare`
 */
export async function previewGiven(
  given: readonly Given[],
  props: PreviewMeans,
  blocking = false,
): Promise<Diff> {
  const previews: Diff[] = [];
  for (const [kind, ofKind] of Map.groupBy(given, ({ input }) => input.kind))
    previews.push(await previewKind(kind, ofKind, props, { blocking }));
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

export interface KindPreview extends Diff {
  /** Number of the custom resources that an operator watches. */
  readonly watched: number;
}

/** Returns what would follow from custom resources of one kind. @throws as `compare` */
export async function previewKind(
  kind: Kind,
  resources: readonly GivenResource[],
  { transport, contextFor, warn }: PreviewMeans,
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
