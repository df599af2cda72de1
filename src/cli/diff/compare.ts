import { isDeepStrictEqual } from 'node:util';
import { messageOf, OperatorError } from '../../contract/error.js';
import type { Explanation } from '../../contract/controller.js';
import type { Kind } from '../../contract/kind.js';
import { describeRef, objectId, objectKey, refOf } from '../../contract/object.js';
import type { AnyObject, ObjectRef } from '../../contract/object.js';
import type { ResourceType } from '../../contract/resource.js';
import { Api } from '../../engine/api.js';
import { ApiError } from '../../engine/api-error.js';
import { preview } from '../../engine/preview/preview.js';
import type { GivenResource, Preview } from '../../engine/preview/preview.js';
import { DRY_RUN_UNSUPPORTED } from '../../engine/preview/dry-run.js';
import type { ObjectPreview } from '../../engine/preview/preview.js';
import { tryResource } from '../../engine/preview/dry-run.js';
import { visible } from '../../engine/preview/dry-run.js';
import type { Transport } from '../../engine/transport.js';
import { readCustomResources } from '../../synth/custom-resource.js';
import type { CustomResourceInput } from '../../synth/custom-resource.js';
import { InputError } from '../../synth/problem.js';
import { placeOf } from '../../synth/document.js';
import { CliError } from '../exit.js';
import { notInstalled } from '../not-installed.js';
import type { ContextFor } from './operator-context.js';
import type { Outcome } from './outcome.js';

export interface CompareProps {
  readonly sources: readonly string[];
  readonly recursive: boolean;
  readonly kinds: readonly Kind[];
  readonly transport: Transport;
  /** Of custom resources that name none. */
  readonly namespace: string;
  readonly contextFor: ContextFor;
  readonly warn: (line: string) => void;
  /** What is wrong with one that is valid, and what to do about it. @default - nothing */
  readonly refuse?: (input: CustomResourceInput) => string | undefined;
  /** See `DryRunProps.blocking`. @default false */
  readonly blocking?: boolean;
}

/** How often a custom resource is tried that others write at the same time. */
const TRIES = 10;

/** A custom resource of a file, as it is in the cluster and as it would be. */
export interface Given extends GivenResource {
  readonly input: CustomResourceInput;
  /** What it was tried over, in the version of the file. @default - it would be new */
  readonly live?: AnyObject;
}

/**
 * Finds out what custom resources would change in a cluster.
 * @throws InputError with what is wrong with them; CliError with exit code 3 where the cluster doesn't answer, or refuses
 */
export async function compare(props: CompareProps): Promise<Outcome> {
  const given = await readGiven(props);
  const followed = await previewGiven(given, props);
  return { ...followed, objects: [...given.map(ofResource), ...followed.objects] };
}

/** The custom resources, as the API server would store them. @throws as `compare` */
export async function readGiven(props: CompareProps): Promise<Given[]> {
  return throughCluster(async () => {
    const inputs = await read(props);
    const refused = inputs.flatMap((input) => {
      const why = props.refuse?.(input);
      return why === undefined ? [] : [`${placeOf(input.document, ['kind'])}: ${why}`];
    });
    if (refused.length > 0) throw new InputError(refused);
    return tryAll(inputs, props.transport);
  });
}

/** What would follow from them. @throws as `compare` */
export async function previewGiven(given: readonly Given[], props: CompareProps): Promise<Outcome> {
  return throughCluster(async () => {
    const kinds = [...new Set(given.map(({ input }) => input.kind))];
    const previews: Preview[] = [];
    for (const kind of kinds) previews.push(await previewKind(kind, given, props));
    const problems = given.flatMap((one) => problemsOf(one, previews));
    if (problems.length > 0) throw new InputError(problems);
    return {
      objects: previews.flatMap(({ objects }) => objects),
      explanations: previews.flatMap(({ explanations }) => explanations),
    };
  });
}

async function throughCluster<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw asRefusal(error);
  }
}

async function read(props: CompareProps): Promise<CustomResourceInput[]> {
  const { sources, recursive, kinds, namespace, transport, warn } = props;
  const live = async (type: ResourceType, key: string): Promise<AnyObject | undefined> => {
    try {
      return await find(transport, type, key);
    } catch (error) {
      throw error instanceof ApiError && error.kindNotServed ? notInstalled([type.kind]) : error;
    }
  };
  return readCustomResources({ sources, recursive, kinds, namespace, warn, live });
}

/** Undefined where there is no such object. @throws ApiError where the kind isn't served, or may not be read */
export async function find(
  transport: Transport,
  type: ResourceType,
  key: string,
): Promise<AnyObject | undefined> {
  try {
    return await new Api(transport).get(type, key);
  } catch (error) {
    if (error instanceof ApiError && error.code === 404 && !error.kindNotServed) return undefined;
    throw error;
  }
}

async function tryAll(inputs: readonly CustomResourceInput[], transport: Transport): Promise<Given[]> {
  const given: Given[] = [];
  const problems: string[] = [];
  for (const input of inputs) {
    try {
      given.push(await tryOne(input, transport));
    } catch (error) {
      if (!(error instanceof ApiError) || (error.code !== 400 && error.code !== 422)) throw error;
      problems.push(`${placeOf(input.document, [])}: the API server refuses it: ${messageOf(error)}`);
    }
  }
  if (problems.length > 0) throw new InputError(problems);
  return given;
}

async function tryOne(input: CustomResourceInput, transport: Transport): Promise<Given> {
  const { kind, cr, document, type } = input;
  const wanted = { ...(document.value as AnyObject), metadata: cr.metadata };
  const { live, answer } = await tryOver(input.live, wanted, type, transport);
  const { apiVersion } = kind.type;
  const after = inStoredVersion(input, answer);
  return { input, after, ...(live && { live, before: { ...live, apiVersion } }) };
}

/**
 * What the API server has answered in the version of the file, in the version that is stored, whose defaults it doesn't
 * have.
 */
export function inStoredVersion({ kind, cr, type }: CustomResourceInput, answer: AnyObject): AnyObject {
  const { apiVersion } = kind.type;
  return type.apiVersion === apiVersion ? answer : { ...answer, apiVersion, spec: cr.spec };
}

/** Whoever writes its status meanwhile makes the one that was read out of date, so that it is read again. */
async function tryOver(
  read: AnyObject | undefined,
  wanted: AnyObject,
  type: ResourceType,
  transport: Transport,
): Promise<{ live: AnyObject | undefined; answer: AnyObject }> {
  let live = read;
  for (let tries = 1; ; tries++) {
    try {
      return { live, answer: await tryResource(transport, type, wanted, live) };
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 409 || tries === TRIES) throw error;
      live = await find(transport, type, objectKey(wanted.metadata.namespace, wanted.metadata.name));
    }
  }
}

async function previewKind(kind: Kind, all: readonly Given[], props: CompareProps): Promise<Preview> {
  const given = all.filter(({ input }) => input.kind === kind);
  const { transport, contextFor, warn } = props;
  const refs = given.map(({ after }) => refOf(after));
  const context = await contextFor(kind, [...new Set(refs.flatMap(({ namespace }) => namespace ?? []))]);
  const { namespaces } = context;
  for (const ref of refs) warnUnlessWatched(ref, namespaces, warn);
  const found = await preview({
    controllers: kind.controllers(context),
    ...{ given, transport, now: () => new Date(), blocking: props.blocking ?? false },
    ...(namespaces && { namespaces }),
  });
  const asked = new Set(refs.map((ref) => objectId(ref)));
  return { ...found, explanations: explanationsFor(asked, found) };
}

function warnUnlessWatched(
  ref: ObjectRef,
  watched: readonly string[] | undefined,
  warn: CompareProps['warn'],
): void {
  if (!watched || ref.namespace === undefined || watched.includes(ref.namespace)) return;
  const where = `no operator looks at ${ref.namespace}, only at ${watched.join(', ')}`;
  warn(`${describeRef(ref)}: ${where}, so nothing would be made of it`);
}

/** Why nothing can be made of a custom resource, as where a policy forbids it. */
function problemsOf({ input, after }: Given, previews: readonly Preview[]): string[] {
  const own = previews
    .flatMap(({ objects }) => objects)
    .filter(({ ref }) => objectId(ref) === objectId(after));
  return own.flatMap(({ error }) =>
    error ? [`${placeOf(input.document, error.path)}: ${error.message}`] : [],
  );
}

/** What would become of the custom resource itself. */
export function ofResource({ before, after }: Given): ObjectPreview {
  const base = { ref: refOf(after), takes: [], leaves: [] };
  if (!before) return { ...base, action: 'created', after };
  if (isDeepStrictEqual(visible(before), visible(after))) return { ...base, action: 'unchanged' };
  return { ...base, action: 'changed', before, after };
}

const NOT_INSTALLED =
  'the kind isn\'t installed in the cluster; install it with "reconstruct install --apply" and the options in use, or apply its CRD';

/** What the cluster said; what is wrong with the input stays as it is. */
function asRefusal(error: unknown): unknown {
  if (error instanceof OperatorError && error.reason === DRY_RUN_UNSUPPORTED)
    return new CliError(`The cluster refuses: ${error.message}`, 3);
  if (!(error instanceof ApiError)) return error;
  return error.kindNotServed
    ? new CliError(`${error.message}: ${NOT_INSTALLED}`, 3)
    : new CliError(`The cluster refuses: ${error.message}`, 3);
}

/** What is told of the custom resources that were asked for, and of others for which something changes by them. */
function explanationsFor(asked: ReadonlySet<string>, found: Preview): Explanation[] {
  const before = new Map(found.explainedBefore.map((one) => [objectId(one.of), one]));
  return found.explanations.flatMap((after) => {
    const id = objectId(after.of);
    const known = before.get(id);
    if (asked.has(id)) return [told(after)];
    return known ? altered(known, after) : [];
  });
}

function told({ of, summary, differs, tables }: Explanation): Explanation {
  return { of, summary, differs, ...(tables && { tables }) };
}

function altered(before: Explanation, after: Explanation): Explanation[] {
  const touches = ({ touches: keys = [] }: Explanation): string[] => [...keys].sort();
  if (isDeepStrictEqual(touches(before), touches(after))) return [];
  const summary = `${after.summary}; as things are, it ${before.summary}`;
  return [{ ...told(after), differs: true, summary }];
}
