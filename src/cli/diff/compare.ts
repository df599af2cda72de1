import { isDeepStrictEqual } from 'node:util';
import type { Explanation } from '../../contract/controller.js';
import { messageOf, OperatorError } from '../../contract/error.js';
import type { Kind } from '../../contract/kind.js';
import { describeRef, objectId, objectKey, refOf } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import type { ResourceType } from '../../contract/resource.js';
import { Api } from '../../engine/api.js';
import { ApiError } from '../../engine/api-error.js';
import { DRY_RUN_UNSUPPORTED, tryResource, visible } from '../../engine/preview/dry-run.js';
import { preview } from '../../engine/preview/preview.js';
import type { GivenResource, ObjectPreview, Preview } from '../../engine/preview/preview.js';
import type { Transport } from '../../engine/transport.js';
import { readCustomResources } from '../../synth/custom-resource.js';
import type { CustomResourceInput } from '../../synth/custom-resource.js';
import { placeOf } from '../../synth/document.js';
import { InputError } from '../../synth/problem.js';
import { CliError } from '../exit.js';
import type { ContextFor } from '../operators.js';
import { notInstalled } from '../with-cluster.js';

/** Everything that follows from the custom resources that were given; they come first. */
export interface Outcome {
  readonly objects: readonly ObjectPreview[];
  readonly explanations: readonly Explanation[];
}

/** Reports whether anything would change, or would be refused. */
export function differs({ objects, explanations }: Outcome): boolean {
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

/** Returns the errors of the cluster by which the outcome is incomplete, each once. */
export function refusals({ objects }: Outcome): string[] {
  const errors = objects.flatMap(({ error }) =>
    error && OF_CLUSTER.has(error.reason) ? [error.message] : [],
  );
  return [...new Set(errors)];
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
  /** Returns why a valid custom resource is refused, and what to do about it. @default - nothing is refused */
  readonly refuse?: (input: CustomResourceInput) => string | undefined;
  /** See `DryRunProps.blocking`. @default false */
  readonly blocking?: boolean;
}

/** A custom resource of a file, as it is in the cluster and as it would be. */
export interface Given extends GivenResource {
  readonly input: CustomResourceInput;
  /** As it was when it was tried, in the version of the file. @default - it would be new */
  readonly live?: AnyObject;
}

/**
 * Finds out by dry runs what custom resources would change in a cluster.
 * @throws InputError with their mistakes; CliError with exit code 3 where the cluster doesn't answer, or refuses
 */
export async function compare(props: CompareProps): Promise<Outcome> {
  const given = await readGiven(props);
  const { objects, explanations } = await previewGiven(given, props);
  return { objects: [...given.map(resourcePreview), ...objects], explanations };
}

/** Reads custom resources, as the API server would store them. @throws as `compare` */
export async function readGiven(props: CompareProps): Promise<Given[]> {
  const { transport, refuse = () => undefined } = props;
  return throughCluster(async () => {
    const inputs = await readCustomResources({
      ...props,
      live: async (type, key) => {
        try {
          return await find(transport, type, key);
        } catch (error) {
          throw error instanceof ApiError && error.kindNotServed ? notInstalled([type.kind]) : error;
        }
      },
    });
    const refused = inputs.flatMap((input) => {
      const why = refuse(input);
      return why === undefined ? [] : [`${placeOf(input.document, ['kind'])}: ${why}`];
    });
    if (refused.length > 0) throw new InputError(refused);
    const given: Given[] = [];
    for (const input of inputs) {
      try {
        given.push(await tryInput(input, transport));
      } catch (error) {
        if (!(error instanceof ApiError) || (error.code !== 400 && error.code !== 422)) throw error;
        refused.push(`${placeOf(input.document, [])}: the API server refuses it: ${messageOf(error)}`);
      }
    }
    if (refused.length > 0) throw new InputError(refused);
    return given;
  });
}

/** Returns what would follow from custom resources. @throws as `compare` */
export async function previewGiven(given: readonly Given[], props: CompareProps): Promise<Outcome> {
  return throughCluster(async () => {
    const kinds = [...new Set(given.map(({ input }) => input.kind))];
    const previews: (Preview & Pick<Outcome, 'explanations'>)[] = [];
    for (const kind of kinds) {
      const ofKind = given.filter(({ input }) => input.kind === kind);
      previews.push(await previewKind(kind, ofKind, props));
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
  });
}

/** Returns undefined where there is no such object. @throws ApiError where the kind isn't served, or may not be read */
export async function find(
  transport: Transport,
  type: ResourceType,
  key: string,
): Promise<AnyObject | undefined> {
  try {
    return await new Api(transport).get(type, key);
  } catch (error) {
    if (error instanceof ApiError && error.objectIsGone) return undefined;
    throw error;
  }
}

/** How often a custom resource is tried that others write at the same time. */
const TRIES = 10;

async function tryInput(input: CustomResourceInput, transport: Transport): Promise<Given> {
  const { kind, cr, document, type } = input;
  const wanted = { ...(document.value as AnyObject), metadata: cr.metadata };
  let { live } = input;
  for (let tries = 1; ; tries++) {
    try {
      const after = inStoredVersion(input, await tryResource(transport, type, wanted, live));
      const before = live && { ...live, apiVersion: kind.type.apiVersion };
      return { input, after, ...(live && before && { live, before }) };
    } catch (error) {
      // A status that was written meanwhile makes the version out of date that was read.
      if (!(error instanceof ApiError) || error.code !== 409 || tries === TRIES) throw error;
      live = await find(transport, type, objectKey(cr.metadata.namespace, cr.metadata.name));
    }
  }
}

/** Returns an answer in the version of the file as one in the stored version, whose defaults it doesn't have. */
export function inStoredVersion({ kind, cr, type }: CustomResourceInput, answer: AnyObject): AnyObject {
  const { apiVersion } = kind.type;
  return type.apiVersion === apiVersion ? answer : { ...answer, apiVersion, spec: cr.spec };
}

async function previewKind(kind: Kind, given: readonly Given[], props: CompareProps): Promise<Preview> {
  const { transport, contextFor, warn } = props;
  const refs = given.map(({ after }) => refOf(after));
  const context = await contextFor(kind, [...new Set(refs.flatMap(({ namespace }) => namespace ?? []))]);
  const { namespaces } = context;
  for (const ref of refs) {
    if (!namespaces || ref.namespace === undefined || namespaces.includes(ref.namespace)) continue;
    const where = `no operator watches ${ref.namespace}, only ${namespaces.join(', ')}`;
    warn(`${describeRef(ref)}: ${where}, so nothing would be made of it`);
  }
  const found = await preview({
    controllers: kind.controllers(context),
    ...{ given, transport, now: () => new Date(), blocking: props.blocking ?? false },
    ...(namespaces && { namespaces }),
  });
  return { ...found, explanations: explanationsFor(new Set(refs.map((ref) => objectId(ref))), found) };
}

/** Returns the explanations of the custom resources that were given, and of others for which something changes by them. */
function explanationsFor(given: ReadonlySet<string>, found: Preview): Explanation[] {
  const before = new Map(found.explainedBefore.map((one) => [objectId(one.of), one]));
  const touched = ({ touches = [] }: Explanation): string[] => [...touches].sort();
  return found.explanations.flatMap((after) => {
    const { of, summary, differs, tables } = after;
    const explanation = { of, summary, differs, ...(tables && { tables }) };
    if (given.has(objectId(of))) return [explanation];
    const known = before.get(objectId(of));
    if (!known || isDeepStrictEqual(touched(known), touched(after))) return [];
    return [{ ...explanation, differs: true, summary: `${summary}; as things are, it ${known.summary}` }];
  });
}

function resourcePreview({ before, after }: Given): ObjectPreview {
  const base = { ref: refOf(after), takes: [], leaves: [] };
  if (!before) return { ...base, action: 'created', after };
  if (isDeepStrictEqual(visible(before), visible(after))) return { ...base, action: 'unchanged' };
  return { ...base, action: 'changed', before, after };
}

const INSTALL_IT =
  'the kind isn\'t installed in the cluster; install it with "reconstruct install --apply" and the options in use, or apply its CRD';

/** Turns refusals of the cluster into errors of a command. */
async function throughCluster<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ApiError && error.kindNotServed)
      throw new CliError(`${error.message}: ${INSTALL_IT}`, 3);
    const isRefusal =
      error instanceof ApiError || (error instanceof OperatorError && error.reason === DRY_RUN_UNSUPPORTED);
    throw isRefusal ? new CliError(`The cluster refuses: ${error.message}`, 3) : error;
  }
}
