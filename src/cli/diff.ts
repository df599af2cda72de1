import type { FieldConflict } from '../contract/change.js';
import type { Explanation, Table } from '../contract/controller.js';
import { messageOf } from '../contract/error.js';
import type { Kind } from '../contract/kind.js';
import { describeRef, objectId, objectKey, refOf } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import type { ResourceType } from '../contract/resource.js';
import { writeYaml } from '../contract/yaml.js';
import { ApiError } from '../engine/api-error.js';
import { Api } from '../engine/api.js';
import { DRY_RUN_UNSUPPORTED, tryResource, visible } from '../engine/preview/dry-run.js';
import { preview } from '../engine/preview/preview.js';
import type { GivenResource, ObjectPreview, Preview, PreviewAction } from '../engine/preview/preview.js';
import type { Transport } from '../engine/transport.js';
import { readCustomResources } from '../synth/custom-resource.js';
import type { CustomResourceInput } from '../synth/custom-resource.js';
import { placeOf } from '../synth/document.js';
import { InputError } from '../synth/problem.js';
import { render } from '../synth/render.js';
import { notInstalled, withCluster } from './cluster.js';
import { kindFlagValues } from './commands.js';
import type { SharedOptions } from './commands.js';
import { loadKinds } from './config.js';
import { fieldChanges, shown } from './diff/fields.js';
import { CliError } from './exit.js';
import { operatorContext } from './operators.js';
import type { ContextFor } from './operators.js';
import { paint, plain, print, printError, warn } from './output.js';
import type { Color, Paint } from './output.js';
import { policyOf, policyParser } from './policy-file.js';
import { isDeepStrictEqual } from 'node:util';

interface DiffOptions extends SharedOptions {
  readonly output: 'text' | 'json';
}

/** `reconstruct diff`: shows what would change in the cluster. */
export async function runDiff(sources: readonly string[], options: DiffOptions): Promise<void> {
  const kinds = await loadKinds(options);
  const policy = await policyOf(options);
  const { watchNamespace: watchNamespaces, operatorNamespace, recursive = false } = options;
  await withCluster(options, async (cluster, { transport, namespace: own }) => {
    const contextFor = operatorContext({
      ...{ cluster, render, warn, note: printError, policy, watchNamespaces, operatorNamespace },
      flags: kindFlagValues(options),
      parsePolicy: async (name, text) => (await policyParser(options))(name, text),
    });
    const namespace = options.namespace ?? own;
    const outcome = await compare({ sources, kinds, transport, contextFor, warn, recursive, namespace });
    await print(options.output === 'json' ? jsonOf(outcome) : textOf(outcome, paint));
    const refused = refusals(outcome);
    if (refused.length > 0) throw new CliError(refused, 3);
    if (differs(outcome)) process.exitCode = 1;
  });
}

export interface Outcome {
  readonly objects: readonly ObjectPreview[];
  readonly explanations: readonly Explanation[];
}

/** Reasons that are due to the cluster or the credentials, and not to what was given. */
const OF_CLUSTER: ReadonlySet<string> = new Set([
  ...['Forbidden', 'Unauthorized', 'Unreachable', 'ServerOverloaded', 'KindNotServed', 'NotFound'],
  DRY_RUN_UNSUPPORTED,
]);

/** Returns the errors of the cluster by which the outcome is incomplete, each once. */
export function refusals({ objects }: Outcome): string[] {
  const errors = objects.map(({ error }) => error).filter((error) => OF_CLUSTER.has(error?.reason ?? ''));
  return [...new Set(errors.map((error) => error?.message ?? ''))];
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
  /** As it was when it was tried, in the version of the file. @default - it would be new */
  readonly live?: AnyObject;
}

/**
 * Finds out by dry runs what custom resources would change in a cluster.
 * @throws InputError with their mistakes; ApiError where the cluster refuses
 */
export async function compare(props: CompareProps): Promise<Outcome> {
  const given = await readGiven(props);
  const { objects, explanations } = await previewGiven(given, props);
  return { objects: [...given.map(resourcePreview), ...objects], explanations };
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
    find(transport, type, key).catch((error: unknown) => {
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
    try {
      const { stored: after, live } = await putOver(input, transport, (wanted, over) =>
        tryResource(transport, input.type, wanted, over),
      );
      const before = live && { ...live, apiVersion: input.kind.type.apiVersion };
      given.push({ input, after, ...(live && before && { live, before }) });
    } catch (error) {
      if (!(error instanceof ApiError) || (error.code !== 400 && error.code !== 422)) throw error;
      refused.push(`${placeOf(input.document, [])}: the API server refuses it: ${messageOf(error)}`);
    }
  }
  if (refused.length > 0) throw new InputError(refused);
  return given;
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
): Promise<Outcome> {
  const previews: Preview[] = [];
  for (const kind of new Set(given.map(({ input }) => input.kind))) {
    const ofKind = given.filter(({ input }) => input.kind === kind);
    previews.push(await previewKind(kind, ofKind, props, blocking));
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

/** Returns undefined where there is no such object. @throws ApiError where the kind isn't served, or may not be read */
async function find(transport: Transport, type: ResourceType, key: string): Promise<AnyObject | undefined> {
  return new Api(transport).get(type, key).catch((error: unknown) => {
    if (error instanceof ApiError && error.objectIsGone) return undefined;
    throw error;
  });
}

/** How often a custom resource is put that others write at the same time. */
const TRIES = 10;

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
  for (let tries = 1; ; tries++) {
    try {
      const answer = await put(wanted, live);
      // One in another version doesn't have the defaults of the stored one.
      const stored = type.apiVersion === apiVersion ? answer : { ...answer, apiVersion, spec: cr.spec };
      return { stored, live };
    } catch (error) {
      const isOutOfDate =
        error instanceof ApiError &&
        (error.code === 409 || error.wrongUid || (live !== undefined && error.objectIsGone));
      if (!isOutOfDate || tries === TRIES) throw error;
      live = await find(transport, type, objectKey(cr.metadata.namespace, cr.metadata.name));
      check(live);
    }
  }
}

async function previewKind(
  kind: Kind,
  given: readonly Given[],
  { transport, contextFor, warn }: CompareProps,
  blocking: boolean,
): Promise<Preview> {
  const refs = given.map(({ after }) => refOf(after));
  const context = await contextFor(kind, [...new Set(refs.flatMap(({ namespace }) => namespace ?? []))]);
  const { namespaces } = context;
  for (const ref of refs)
    if (namespaces && ref.namespace !== undefined && !namespaces.includes(ref.namespace))
      warn(
        `${describeRef(ref)}: no operator watches ${ref.namespace}, only ${namespaces.join(', ')}, so nothing would be made of it`,
      );
  const found = await preview({
    ...{ controllers: kind.controllers(context), given, transport, now: () => new Date(), blocking },
    ...(namespaces && { namespaces }),
  });
  return { ...found, explanations: explanationsFor(new Set(refs.map((ref) => objectId(ref))), found) };
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

function resourcePreview({ before, after }: Given): ObjectPreview {
  const base = { ref: refOf(after), takes: [], leaves: [] };
  if (!before) return { ...base, action: 'created', after };
  if (isDeepStrictEqual(visible(before), visible(after))) return { ...base, action: 'unchanged' };
  return { ...base, action: 'changed', before, after };
}

/** Reports whether anything would change, or would be refused. */
export function differs({ objects, explanations }: Outcome): boolean {
  return objects.some(isDifference) || explanations.some((explanation) => explanation.differs);
}

function isDifference({ action, leaves }: ObjectPreview): boolean {
  return action !== 'unchanged' || leaves.length > 0;
}

/** By action: what is said of an object, and in the summary of all. */
const ACTIONS: Readonly<Record<PreviewAction, { readonly said: string; readonly counted?: string }>> = {
  created: { said: 'would be created', counted: 'to create' },
  changed: { said: 'would be changed', counted: 'to change' },
  recreated: { said: 'would be deleted and created again', counted: 'to recreate' },
  deleted: { said: 'would be deleted', counted: 'to delete' },
  unchanged: { said: 'would stay as it is' },
  failed: { said: "can't be applied", counted: 'refused' },
  skipped: { said: 'would be left as it is, since something before it fails', counted: 'skipped' },
};

export function textOf({ objects, explanations }: Outcome, paintAny: Paint): string {
  const paint: Paint = (color, text) => paintAny(color, plain(text));
  const counts = Object.entries(ACTIONS).flatMap(([action, { counted }]) => {
    const count = objects.filter((object) => object.action === action).length;
    return count > 0 && counted !== undefined ? [`${count} ${counted}`] : [];
  });
  return [
    ...objects.filter(isDifference).map((object) => objectText(object, paint)),
    ...explanations.map(({ of, summary, tables = [] }) =>
      [
        paint('bold', `${describeRef(of)} ${summary}`),
        ...tables.filter(({ rows }) => rows.length > 0).flatMap((table) => ['', ...tableLines(table, paint)]),
        '',
      ].join('\n'),
    ),
    ...(counts.length > 0 ? [paint('bold', `${counts.join(', ')}\n`)] : []),
  ].join('\n');
}

function objectText(object: ObjectPreview, paint: Paint): string {
  const { ref, action, error, takes, leaves } = object;
  const isOdd = action === 'failed' || action === 'skipped';
  const said = `${describeRef(ref)} ${ACTIONS[action].said}${error ? `: ${error.reason}` : ''}`;
  const conflict = (fate: string, { field, manager }: FieldConflict): string =>
    paint('yellow', `  ${field} is ${fate} ${manager || 'another field manager'}`);
  return [
    paint(isOdd ? 'yellow' : 'bold', said),
    ...(error ? [`  ${plain(error.message)}`] : []),
    ...contentLines(object, paint),
    ...takes.map((each) => conflict('taken from', each)),
    ...leaves.map((each) => conflict('left to', each)),
    '',
  ].join('\n');
}

function contentLines(object: ObjectPreview, paint: Paint): string[] {
  const { before, after } = shown(object);
  const marked = (mark: string, value: unknown, color: Color): string[] => {
    const lines = writeYaml(value).trimEnd().split('\n');
    return lines.map((line) => paint(color, `${mark} ${line}`));
  };
  if (object.action !== 'changed') return after ? marked('+', after, 'green') : [];
  return fieldChanges(before, after).flatMap(({ path, ...change }) => [
    `  ${plain(path)}`,
    ...('before' in change ? marked('-', change.before, 'red') : []),
    ...('after' in change ? marked('+', change.after, 'green') : []),
  ]);
}

function tableLines({ title, columns, rows }: Table, paint: Paint): string[] {
  const all = [columns, ...rows];
  const widths = columns.map((_, column) => Math.max(...all.map((row) => (row[column] ?? '').length)));
  const lines = all.map((row) =>
    `    ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('   ')}`.trimEnd(),
  );
  const [head = '', ...body] = lines;
  return [`  ${plain(title)}`, paint('dim', head), ...body.map(plain)];
}

/** Renders for programs: one document with every object, also those that would stay as they are. */
export function jsonOf(outcome: Outcome): string {
  const { objects, explanations } = outcome;
  const document = { differs: differs(outcome), objects: objects.map(objectOf), explanations };
  return `${JSON.stringify(document, undefined, 2)}\n`;
}

function objectOf(object: ObjectPreview): object {
  const { ref, action, error, takes, leaves } = object;
  const { before, after } = shown(object);
  return {
    ...ref,
    action,
    ...(action === 'changed' && { fields: fieldChanges(before, after) }),
    ...((action === 'created' || action === 'recreated') && after && { object: after }),
    ...(error && { reason: error.reason, message: error.message }),
    ...(takes.length > 0 && { takes }),
    ...(leaves.length > 0 && { leaves }),
  };
}
