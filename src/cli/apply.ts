import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { Action, Change } from '../contract/change.js';
import { OperatorError } from '../contract/error.js';
import type { Render } from '../contract/kind.js';
import { describeRef, objectId, refOf } from '../contract/object.js';
import { waitText } from '../author/order.js';
import type { AnyObject, ObjectRef } from '../contract/object.js';
import { ApiError, classify } from '../client/api-error.js';
import { Api } from '../client/api.js';
import { systemClock } from '../client/clock.js';
import type { Clock } from '../client/clock.js';
import { visible } from '../engine/preview/dry-run.js';
import { carryOutOnce } from '../engine/plan/once.js';
import type { ObjectPreview } from '../engine/preview/preview.js';
import type { Transport } from '../client/transport.js';
import type { InstalledOperator } from '../install/installed.js';
import type { CustomResourceInput, ReadOptions } from '../validate/custom-resource.js';
import { placeOf } from '../validate/document.js';
import { InputError } from '../validate/problem.js';
import { offlineInputs } from '../render/references.js';
import { render } from '../render/renderer.js';
import { forPerson, withCluster } from './cluster.js';
import type { SharedOptions } from './options.js';
import { loadKinds } from './config.js';
import { afterPauses, previewGiven, resourcePreview } from './diff/compare.js';
import { onceReady } from './diff/text.js';
import { untilInterrupted } from './exit.js';
import { putOver, readGiven } from './given.js';
import type { Given } from './given.js';
import { responsibleOperator } from './operators.js';
import { CliError, counted, plain, print, warn } from './output.js';
import { adminFiles } from './admin-file.js';
import { follow } from './reader.js';
import type { List } from './reader.js';
import { look, wordByChildren } from './tree/model.js';
import type { PodStatus, ResourceStatus, StatusDocument, Verdict } from './tree/model.js';
import { childLine, newLines, podLines, resourceLine } from './tree/text.js';
import type { Line } from './tree/text.js';

interface ApplyOptions extends SharedOptions {
  readonly prune?: boolean;
  readonly dryRun?: boolean;
  readonly wait?: boolean;
  readonly timeout: number;
}

/** `reconstruct apply`: applies custom resources and their children once, without a controller. */
export async function runApply(sources: readonly string[], options: ApplyOptions): Promise<void> {
  const kinds = await loadKinds(options);
  const files = await adminFiles(options);
  const report = (line: string): Promise<void> => print(`${plain(line)}\n`);
  const { operatorNamespace, prune = false, dryRun = false, recursive = false, timeout } = options;
  const deadline = performance.now() + timeout;
  await withCluster(options, async (cluster, { transport, api, namespace }) => {
    const applied = await applyResources({
      ...{ sources, kinds, transport, namespace, warn, report, prune, dryRun, recursive },
      render: (kind, cr, inputs) => render(kind, cr, { ...inputs, ...files }),
      operatorOf: responsibleOperator({ cluster, warn, operatorNamespace }),
      ...(options.wait && { deadline }),
    });
    if (!options.wait) return;
    const late = AbortSignal.timeout(Math.ceil(Math.max(0, deadline - performance.now())));
    const props = { api, clock: systemClock, report, late, timeoutMilliseconds: timeout };
    await untilInterrupted((signal) => waitUntilReady(applied, { ...props, signal }));
    for (const { after } of applied) await report(`${after.kind} ${after.metadata.name} is ready`);
  });
}

/** States of a pod that don't pass by themselves. */
const LASTING: ReadonlySet<string> = new Set([
  'Unschedulable',
  'InvalidImageName',
  'ErrImageNeverPull',
  'ImageRunsAsRoot',
  'CreateContainerConfigError',
]);
/** Time after which a state lasts: before, its pod may be about to be replaced, or a node may have room again. */
const LASTING_MILLISECONDS = 60_000;

const FIRST_PAUSE_MILLISECONDS = 250;
const MAX_PAUSE_MILLISECONDS = 2_000;
const PATIENCE_MILLISECONDS = 10_000;

interface ApplyProps extends ReadOptions {
  readonly transport: Transport;
  readonly warn: (line: string) => void;
  readonly render: Render;
  /** Returns the operator that is responsible for a custom resource, as far as can be seen. */
  readonly operatorOf: (given: Given) => Promise<InstalledOperator | undefined>;
  readonly prune: boolean;
  /** Whether what would be done is reported, and nothing is written. @default false */
  readonly dryRun?: boolean;
  /** End of the retries of failures that may pass, by `performance.now()`. @default - for ten seconds of writing */
  readonly deadline?: number;
  readonly report: (line: string) => Promise<void>;
}

/** A custom resource that was applied, and the operator that does the rest. */
export interface Applied extends Given {
  /** @default - none: its children were applied too */
  readonly operator: InstalledOperator | undefined;
}

/**
 * Applies custom resources and, where no operator is responsible, their children.
 *
 * **Guarantees.** Nothing is written unless all of them are valid and every dry run has succeeded. One that can't be
 * written after all keeps none of the others from being written, and what stays unwritten is reported.
 *
 * @throws InputError with their mistakes; CliError with exit code 3 where the cluster doesn't answer, or refuses
 */
export async function applyResources(props: ApplyProps): Promise<Applied[]> {
  const { render, operatorOf, report } = props;
  const compareProps = { ...props, contextFor: () => Promise.resolve({ render }) };
  const all: Applied[] = [];
  for (const given of await readGiven(compareProps, refusal))
    all.push({ ...given, operator: await operatorOf(given) });
  const problems = all.flatMap((one) => (one.operator ? unrenderable(one, render) : []));
  if (problems.length > 0) throw new InputError(problems);
  const own = all.filter(({ operator }) => !operator);
  const { objects, explanations } = await previewGiven(own, compareProps, true);
  const { pauses } = afterPauses(own, ({ input }) => input.kind);
  const explain = async (): Promise<void> => {
    for (const { of, summary } of [...pauses, ...explanations]) await report(`${describeRef(of)} ${summary}`);
  };
  const refused = objects.flatMap(({ action, ref, error }) =>
    action === 'failed' && error ? [`${describeRef(ref)} would be refused: ${reasonOf(ref, error)}`] : [],
  );
  if (refused.length > 0) throw new CliError([...refused, 'Nothing was written'], 3);

  if (props.dryRun) {
    for (const one of all) {
      await report(previewLine(resourcePreview(one), props));
      const { operator } = one;
      if (operator) await report(`${nameOf(one)} would be left to the operator in ${operator.namespace}`);
    }
    for (const object of objects) await report(previewLine(object, props));
    await explain();
    return all;
  }

  const deadline = props.deadline ?? performance.now() + PATIENCE_MILLISECONDS;
  const unapplied: Unapplied = { failures: 0, waiting: 0 };
  for (const [index, one] of all.entries()) {
    try {
      await applyOne(one, props, deadline, unapplied);
    } catch (error) {
      for (const left of all.slice(index + 1)) await report(`${nameOf(left)} isn't written`);
      throw error;
    }
  }
  await explain();
  const { failures, waiting } = unapplied;
  if (failures > 0) throw new CliError(`${counted(failures, 'object was', 'objects were')} refused`, 3);
  if (waiting > 0) {
    const what = counted(waiting, 'object waits', 'objects wait');
    if (props.deadline !== undefined) throw new CliError(`${what} still`, 3);
    await report(`${what}: apply again once that is ready, or with --wait; an operator goes on by itself`);
  }
  return all;
}

/** Returns why the operator could make nothing of it, as far as that is seen without what it refers to. */
function unrenderable({ input: { kind, cr, document } }: Given, render: Render): string[] {
  if (!('each' in kind.rendering)) return [];
  try {
    render(kind.rendering.each, cr, offlineInputs(kind.rendering.each, cr, {}));
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    if (error.reason !== 'ReferenceNotFound') return [`${placeOf(document, error.path)}: ${error.message}`];
  }
  return [];
}

function nameOf({ after }: Given): string {
  return describeRef(after);
}

/** Refuses kinds whose work depends on all of their custom resources, and on the time. */
function refusal({ kind, cr }: CustomResourceInput): string | undefined {
  if ('each' in kind.rendering) return undefined;
  return (
    `${kind.type.kind} ${cr.metadata.name} needs an operator, which "reconstruct install --apply" and the options in use install: what it does isn't ` +
    `a matter of objects of its own, which "reconstruct apply" makes; apply it with "kubectl apply", then see ` +
    `"reconstruct status ${kind.name}/${cr.metadata.name}"`
  );
}

/** Numbers of objects that were refused, and that wait for others. */
interface Unapplied {
  failures: number;
  waiting: number;
}

async function applyOne(
  one: Applied,
  { render, transport, report, prune, deadline: waitsUntil }: ApplyProps,
  deadline: number,
  unapplied: Unapplied,
): Promise<void> {
  const { operator } = one;
  const name = nameOf(one);
  const refused = async (what: string, error: unknown): Promise<void> => {
    const refusal = error instanceof ApiError ? classify(error, `Apply ${name}`) : error;
    if (!(refusal instanceof OperatorError) || refusal.reason === 'Unreachable') throw error;
    await report(`${what}: ${forPerson(refusal.message)}`);
    unapplied.failures++;
  };
  let cr: AnyObject;
  try {
    const written = await write(one, transport);
    cr = written.cr;
    await report(changeLine({ ref: refOf(one.after), action: written.action }));
  } catch (error) {
    return refused(`${name} isn't written${operator ? '' : ', nor what is made of it'}`, error);
  }
  if (operator) return report(`${name} is left to the operator in ${operator.namespace}`);
  const pause = async (tries: number): Promise<boolean> => {
    const milliseconds = Math.min(FIRST_PAUSE_MILLISECONDS * 2 ** (tries - 1), MAX_PAUSE_MILLISECONDS);
    if (performance.now() + milliseconds > deadline) return false;
    await delay(milliseconds);
    return true;
  };
  try {
    for (const controller of one.input.kind.controllers({ render })) {
      const waits = waitsUntil !== undefined;
      const once = { controller, transport, prune, now: () => new Date(), pause, waits };
      const { changes, kept, error } = await carryOutOnce(cr, once);
      for (const change of changes) await report(changeLine(change));
      for (const ref of kept) await report(`${describeRef(ref)} ${UNPRUNED}`);
      if (error) await report(`${name} can't be rendered: ${error.message}`);
      unapplied.failures += changes.filter(({ action }) => action === 'failed').length + (error ? 1 : 0);
      unapplied.waiting += changes.filter(({ waitsFor }) => waitsFor).length;
    }
  } catch (error) {
    await refused(`What is made of ${name} isn't written, or not all of it`, error);
  }
}

const UNPRUNED = "left as it is: it isn't rendered any more, and --prune deletes it";

function previewLine({ ref, action, waitsFor }: ObjectPreview, { prune }: ApplyProps): string {
  const done = action === 'changed' ? 'configured' : action;
  const what = done === 'deleted' && !prune ? UNPRUNED : REPORTED[done];
  return `${describeRef(ref)} ${done === 'unchanged' ? what : `would be ${what}`}${onceReady(waitsFor)}`;
}

const REPORTED: Readonly<Record<Action, string>> = {
  ...{ created: 'created', configured: 'configured', corrected: 'configured', unchanged: 'unchanged' },
  ...{ recreated: 'deleted and created again', deleted: 'pruned', failed: 'refused' },
  skipped: 'left as it is, since something before it failed',
  drifted: 'left as another writer has changed it',
};

/** Returns the reason in words that don't name the object again. */
function reasonOf(ref: ObjectRef, { reason, message }: OperatorError): string {
  const name = describeRef(ref);
  const named = [`Apply ${name}: `, `${name} `].find((start) => message.startsWith(start)) ?? '';
  return `${reason}: ${forPerson(message.slice(named.length))}`;
}

function changeLine({ ref, action, error, waitsFor }: Change): string {
  if (waitsFor) return waitText(ref, waitsFor);
  const why = error ? `: ${reasonOf(ref, error)}` : '';
  return `${describeRef(ref)} ${REPORTED[action]}${why}`;
}

/**
 * Writes a custom resource over the one that it was tried over.
 * @returns the custom resource in the stored version
 * @throws ApiError where the API server refuses it; OperatorError `Conflict` where more of it than the status was changed,
 *   it was deleted, or one of that name was created
 */
async function write(
  { input, before, after }: Given,
  transport: Transport,
): Promise<{ readonly action: Action; readonly cr: AnyObject }> {
  if (before && isDeepStrictEqual(visible(before), visible(after)))
    return { action: 'unchanged', cr: before };
  const tried = input.live;
  const { stored } = await putOver(input, new Api(transport), 'reconstruct-apply', (live) => {
    if (tried && live && isDeepStrictEqual(triedOver(tried), triedOver(live))) return;
    const what = live ? (tried ? 'changed' : 'created by another client') : 'deleted';
    const message = `it was ${what} meanwhile; look at it, and give the command again`;
    throw new OperatorError({ reason: 'Conflict', message });
  });
  return { action: before ? 'configured' : 'created', cr: stored };
}

/** Returns what must not have changed since the dry run: the status is the controller's alone. */
function triedOver({ metadata: { uid, labels = {}, annotations = {} }, spec }: AnyObject): object {
  return { uid, labels, annotations, spec };
}

export interface WaitProps {
  readonly api: Api;
  readonly clock: Clock;
  readonly timeoutMilliseconds: number;
  readonly signal: AbortSignal;
  readonly late: AbortSignal;
  readonly report: (line: string) => Promise<void>;
}

/**
 * Waits until custom resources are ready: by their own conditions where an operator is responsible, else by their
 * children.
 * @throws CliError with exit code 3 and the reasons when the time is over, or where waiting is useless, as for a pod that is
 * unschedulable for a minute
 */
export async function waitUntilReady(applied: readonly Applied[], props: WaitProps): Promise<void> {
  const { api, clock, timeoutMilliseconds, signal, late, report } = props;
  const lookAll = async (list: List): Promise<StatusDocument> => {
    const documents = applied.map(({ input: { kind }, after: { metadata }, operator }) => {
      const { namespace, name } = metadata;
      return look({ targets: [{ kind, name }], operators: operator !== undefined, namespace }, list);
    });
    const all = await Promise.all(documents);
    const notes = new Set(all.flatMap((document) => document.notes));
    return { notes: [...notes], resources: all.flatMap(({ resources }) => resources) };
  };
  const until = AbortSignal.any([late, signal]);
  let lines = new Map<string, string>();
  // By the UIDs of pods: since when they were seen in a state that lasts.
  let lasting = new Map<string, number>();
  let failed: ((when: string) => CliError) | undefined;
  for await (const document of follow({ api, clock, signal: until, look: lookAll })) {
    const trees = applied.map((one) => treeOf(one, document));
    const progress = new Map(trees.flatMap((tree) => progressOf(tree, lines.size > 0)));
    for (const line of newLines(lines, progress)) await report(line);
    lines = new Map([...lines, ...progress]);
    if (trees.every(({ word }) => word === 'Ready')) return;
    failed = (when) =>
      new CliError([...trees.flatMap((tree) => reasonsOf(tree, when)), ...document.notes], 3);
    if (trees.some(({ word }) => word === 'Stalled')) throw failed('');
    const now = clock.monotonic();
    const pods = trees.flatMap(lastingPods);
    lasting = new Map(pods.map(({ uid }) => [uid, lasting.get(uid) ?? now]));
    const stuck = pods.find(({ uid }) => now - (lasting.get(uid) ?? now) >= LASTING_MILLISECONDS);
    if (stuck)
      throw failed(`, and it won't be: a pod is ${stuck.state} for ${LASTING_MILLISECONDS / 1000} s`);
  }
  if (signal.aborted) throw new CliError('Interrupted: what was applied stays', 3);
  const after = ` after ${timeoutMilliseconds / 1000} s`;
  if (failed) throw failed(after);
  const names = applied.map(nameOf);
  throw new CliError(
    `Whether ${names.join(', ')} ${names.length === 1 ? 'is' : 'are'} ready couldn't be seen${after}: ` +
      'the API server has not answered with all of it',
    3,
  );
}

/** A custom resource that is waited for. */
interface Tree {
  readonly of: Applied;
  /** Status of the custom resource. @default - gone */
  readonly resource: ResourceStatus | undefined;
  readonly word: Verdict['word'];
}

/** Judges by its children what no operator reports on. */
function treeOf(of: Applied, { resources }: StatusDocument): Tree {
  const resource = resources.find((each) => objectId(each) === objectId(of.after));
  if (!resource) return { of, resource, word: 'Unknown' };
  const { word, current } = resource.verdict;
  if (!of.operator) return { of, resource, word: wordByChildren(resource) };
  return { of, resource, word: current ? word : 'Reconciling' };
}

function lastingPods({ resource, word }: Tree): readonly PodStatus[] {
  if (!resource || word === 'Ready') return [];
  return resource.children
    .flatMap(({ pods }) => pods)
    .filter(({ ready, state, nodeAnnounced }) => !ready && LASTING.has(state) && !nodeAnnounced);
}

/** Returns lines on what isn't ready; on all of it, where that was reported before. */
function progressOf(
  { of, resource, word }: Tree,
  all: boolean,
  isShown = ({ message }: { readonly message?: string }): boolean => message !== undefined,
): Line[] {
  if (!resource) return [];
  return [
    ...(!of.operator || (!all && word === 'Ready') ? [] : [resourceLine(resource)]),
    ...resource.children.flatMap((child) => [
      ...(all || child.phase !== 'ready' ? [childLine(child)] : []),
      ...podLines(
        child,
        child.pods.filter((pod) => !pod.ready && isShown(pod)),
      ),
    ]),
  ];
}

function reasonsOf(tree: Tree, when: string): string[] {
  if (tree.word === 'Ready') return [];
  const lines = progressOf(tree, false, () => true).flatMap(([, text]) => text || []);
  const reasons = tree.resource ? [...lines, ...tree.resource.notes] : ['it is gone'];
  return [`${nameOf(tree.of)} isn't ready${when}`, ...reasons.map((line) => `  ${line}`)];
}
