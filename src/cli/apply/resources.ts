import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { Action, Change } from '../../contract/change.js';
import { OperatorError } from '../../contract/error.js';
import type { Render } from '../../contract/kind.js';
import { describeRef, objectId, objectKey, refOf } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import { Api } from '../../engine/api.js';
import { ApiError, classify } from '../../engine/api-error.js';
import type { Clock } from '../../engine/clock.js';
import { putResource, visible } from '../../engine/preview/dry-run.js';
import { carryOutOnce } from '../../engine/preview/planning.js';
import type { Transport } from '../../engine/transport.js';
import type { InstalledOperator } from '../../install/installed.js';
import type { CustomResourceInput } from '../../synth/custom-resource.js';
import { find, inStoredVersion, previewGiven, readGiven } from '../diff/compare.js';
import type { CompareProps, Given } from '../diff/compare.js';
import { CliError } from '../exit.js';
import { look } from '../tree/collect.js';
import type { TreeScope } from '../tree/collect.js';
import { follow } from '../tree/follow.js';
import type { ResourceStatus, StatusDocument } from '../tree/model.js';
import { childLine, newLines, podLine, resourceLine } from '../tree/text.js';
import type { Line } from '../tree/text.js';

const FIRST_PAUSE_MILLISECONDS = 250;
const MAX_PAUSE_MILLISECONDS = 2_000;
const PATIENCE_MILLISECONDS = 10_000;

export interface ApplyProps extends Omit<CompareProps, 'contextFor' | 'refuse' | 'blocking'> {
  readonly render: Render;
  /** Returns the operator that is responsible for a custom resource, as far as can be seen. */
  readonly operatorOf: (given: Given) => Promise<InstalledOperator | undefined>;
  /** Deletes what isn't rendered any more. */
  readonly prune: boolean;
  /** Until when failures are retried that may pass, by `performance.now()`. @default - for ten seconds of writing */
  readonly deadline?: number;
  /** Reports what has become of an object, in a line. */
  readonly report: (line: string) => Promise<void>;
}

/** A custom resource that was applied, and the operator that does the rest. */
export interface Applied {
  readonly given: Given;
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
  const compareProps: CompareProps = {
    ...props,
    ...{ contextFor: () => Promise.resolve({ render }), refuse: refusal, blocking: true },
  };
  const all: Applied[] = [];
  for (const given of await readGiven(compareProps)) all.push({ given, operator: await operatorOf(given) });
  const own = all.flatMap(({ given, operator }) => (operator ? [] : [given]));
  const { objects } = await previewGiven(own, compareProps);
  const refused = objects.flatMap(({ action, ref, error }) =>
    action === 'failed' && error
      ? [`${describeRef(ref)} would be refused: ${error.reason}: ${error.message}`]
      : [],
  );
  if (refused.length > 0) throw new CliError([...refused, 'Nothing was written'], 3);

  const deadline = props.deadline ?? performance.now() + PATIENCE_MILLISECONDS;
  let failures = 0;
  for (const [index, one] of all.entries()) {
    try {
      failures += await applyOne(one, { ...props, deadline });
    } catch (error) {
      for (const { given } of all.slice(index + 1)) await report(`${nameOf(given)} isn't written`);
      throw error;
    }
  }
  if (failures > 0)
    throw new CliError(`${failures} ${failures === 1 ? 'object was' : 'objects were'} refused`, 3);
  return all;
}

function nameOf({ after }: Given): string {
  return describeRef(refOf(after));
}

/** Refuses kinds whose work depends on all of their custom resources, and on the time. */
function refusal({ kind, cr }: CustomResourceInput): string | undefined {
  if ('each' in kind.rendering) return undefined;
  const { kind: name } = kind.type;
  return (
    `${name} ${cr.metadata.name} needs an operator, which "reconstruct install --apply" and the options in use install: what it does isn't ` +
    `a matter of objects of its own, which "reconstruct apply" makes; apply it with "kubectl apply", then see ` +
    `"reconstruct status ${kind.name}/${cr.metadata.name}"`
  );
}

/** @returns how many objects were refused */
async function applyOne(
  { given, operator }: Applied,
  props: ApplyProps & { readonly deadline: number },
): Promise<number> {
  const { transport, report } = props;
  const name = nameOf(given);
  let cr: AnyObject;
  try {
    const written = await write(given, transport);
    cr = written.cr;
    await report(changeLine(written.change));
  } catch (error) {
    const what = operator ? `${name} isn't written` : `${name} isn't written, nor what is made of it`;
    await report(`${what}: ${reasonOf(error, name)}`);
    return 1;
  }
  if (operator) {
    await report(`${name} is left to the operator in ${operator.namespace}`);
    return 0;
  }
  try {
    return await applyChildren(cr, given, props);
  } catch (error) {
    await report(`What is made of ${name} isn't written, or not all of it: ${reasonOf(error, name)}`);
    return 1;
  }
}

async function applyChildren(
  cr: AnyObject,
  { input }: Given,
  { render, transport, report, prune, deadline }: ApplyProps & { readonly deadline: number },
): Promise<number> {
  const pause = async (tries: number): Promise<boolean> => {
    const milliseconds = Math.min(FIRST_PAUSE_MILLISECONDS * 2 ** (tries - 1), MAX_PAUSE_MILLISECONDS);
    if (performance.now() + milliseconds > deadline) return false;
    await delay(milliseconds);
    return true;
  };
  let failures = 0;
  for (const controller of input.kind.controllers({ render })) {
    const once = { controller, transport, prune, now: () => new Date(), pause };
    const { changes, kept, error } = await carryOutOnce(cr, once);
    for (const change of changes) await report(changeLine(change));
    for (const ref of kept)
      await report(`${describeRef(ref)} left as it is: it isn't rendered any more, and --prune deletes it`);
    if (error) await report(`${describeRef(refOf(cr))} can't be rendered: ${error.message}`);
    failures += changes.filter(({ action }) => action === 'failed').length + (error ? 1 : 0);
  }
  return failures;
}

/** Returns why a custom resource was refused. @throws any other error */
function reasonOf(error: unknown, name: string): string {
  if (error instanceof OperatorError && error.reason !== 'Unreachable') return error.message;
  if (error instanceof ApiError) return classify(error, `Apply ${name}`).message;
  throw error;
}

const REPORTED: Readonly<Record<Action, string>> = {
  ...{ created: 'created', configured: 'configured', corrected: 'configured', unchanged: 'unchanged' },
  ...{ recreated: 'deleted and created again', deleted: 'pruned', failed: 'refused' },
  skipped: 'left as it is, since something before it failed',
};

function changeLine({ ref, action, error }: Change): string {
  const why = error ? `: ${error.reason}: ${error.message}` : '';
  return `${describeRef(ref)} ${REPORTED[action]}${why}`;
}

const FIELD_MANAGER = 'reconstruct-apply';

/** How often a custom resource is written whose status others write at the same time. */
const TRIES = 10;

/**
 * Writes a custom resource over the one that it was tried over.
 * @returns the custom resource in the stored version
 * @throws ApiError where the API server refuses it; OperatorError `Conflict` where more of it than the status was changed,
 *   it was deleted, or one of that name was created
 */
async function write(
  { input, live: tried, before, after }: Given,
  transport: Transport,
): Promise<{ readonly change: Change; readonly cr: AnyObject }> {
  const ref = refOf(after);
  if (before && isDeepStrictEqual(visible(before), visible(after)))
    return { change: { ref, action: 'unchanged' }, cr: before };
  const { cr, document, type } = input;
  const wanted = { ...(document.value as AnyObject), metadata: cr.metadata };
  const api = new Api(transport);
  let live = tried;
  for (let tries = 1; ; tries++) {
    try {
      const stored = await putResource(api, type, wanted, { live, fieldManager: FIELD_MANAGER });
      const action = before ? 'configured' : 'created';
      return { change: { ref, action }, cr: inStoredVersion(input, stored) };
    } catch (error) {
      const isOutOfDate =
        error instanceof ApiError &&
        (error.code === 409 || error.wrongUid || (live !== undefined && error.objectIsGone));
      if (!isOutOfDate) throw error;
      live = await find(transport, type, objectKey(cr.metadata.namespace, cr.metadata.name));
      if (tries === TRIES || !tried || !live || !isDeepStrictEqual(triedOver(tried), triedOver(live)))
        throw changedMeanwhile(tried, live);
    }
  }
}

/** Returns what must not have changed since the dry run: the status is the controller's alone. */
function triedOver({ metadata: { uid, labels = {}, annotations = {} }, spec }: AnyObject): object {
  return { uid, labels, annotations, spec };
}

function changedMeanwhile(tried: AnyObject | undefined, live: AnyObject | undefined): OperatorError {
  const what = live ? (tried ? 'changed' : 'made by somebody else') : 'deleted';
  const message = `it was ${what} meanwhile; look at it, and give the command again`;
  return new OperatorError({ reason: 'Conflict', message });
}

export interface WaitProps {
  readonly api: Api;
  readonly clock: Clock;
  /** For how long the command may take, for messages. */
  readonly timeoutMilliseconds: number;
  /** What is left of it. @default - all */
  readonly leftMilliseconds?: number;
  readonly signal: AbortSignal;
  /** Reports progress, in a line. */
  readonly report: (line: string) => Promise<void>;
}

/**
 * Waits until custom resources are ready: by their own conditions where an operator is responsible, else by their
 * children.
 * @throws CliError with exit code 3 and the reasons when the time is over, or where waiting is useless
 */
export async function waitUntilReady(applied: readonly Applied[], props: WaitProps): Promise<void> {
  const { api, clock, timeoutMilliseconds, signal, report } = props;
  const late = new AbortController();
  const timer = clock.setTimer(props.leftMilliseconds ?? timeoutMilliseconds, () => {
    late.abort();
  });
  let trees: readonly Tree[] = [];
  let notes: readonly string[] | undefined;
  let lines = new Map<string, string>();
  let outcome: 'ready' | 'stuck' | undefined;
  try {
    await follow({
      ...{ api, clock, signal: AbortSignal.any([late.signal, signal]) },
      collect: async (source) => {
        const all = await Promise.all(applied.map((one) => look(scopeOf(one), source)));
        return {
          notes: [...new Set(all.flatMap((document) => document.notes))],
          resources: all.flatMap((document) => document.resources),
        };
      },
      onDocument: async (document) => {
        notes = document.notes;
        trees = applied.map((one) => treeOf(one, document));
        const progress = new Map(trees.flatMap((tree) => progressOf(tree, lines.size > 0)));
        for (const line of newLines(lines, progress)) await report(line);
        lines = new Map([...lines, ...progress]);
        if (trees.every(({ state }) => state === 'ready')) outcome = 'ready';
        else if (trees.some(({ state }) => state === 'stuck')) outcome = 'stuck';
        return outcome !== undefined;
      },
    });
  } finally {
    timer.cancel();
  }
  if (outcome === 'ready') return;
  if (signal.aborted) throw new CliError('Interrupted: what was applied stays', 3);
  const when = outcome === 'stuck' ? '' : ` after ${timeoutMilliseconds / 1000} s`;
  if (notes) throw new CliError([...trees.flatMap((tree) => reasonsOf(tree, when)), ...notes], 3);
  const names = applied.map(({ given }) => nameOf(given));
  throw new CliError(
    `Whether ${names.join(', ')} ${names.length === 1 ? 'is' : 'are'} ready couldn't be seen${when}: ` +
      'the API server has not answered with all of it',
    3,
  );
}

function scopeOf({ given: { input, after }, operator }: Applied): TreeScope {
  const { namespace, name } = after.metadata;
  const targets = [{ kind: input.kind, name }];
  return { targets, operators: operator !== undefined, ...(namespace !== undefined && { namespace }) };
}

/** A custom resource that is waited for. */
interface Tree {
  readonly name: string;
  /** @default - it is gone */
  readonly resource: ResourceStatus | undefined;
  /** No operator reports on it. */
  readonly byChildren: boolean;
  /** `stuck`: it doesn't become ready by itself. */
  readonly state: 'ready' | 'stuck' | 'pending';
}

function treeOf({ given, operator }: Applied, { resources }: StatusDocument): Tree {
  const resource = resources.find((each) => objectId(each) === objectId(given.after));
  const tree = { name: nameOf(given), resource, byChildren: operator === undefined };
  if (!resource) return { ...tree, state: 'pending' };
  const { verdict, children, unseen = [] } = resource;
  // Children that can't be seen may be in any state; a right that is missing doesn't come by waiting.
  const [isReady, isStuck] = tree.byChildren
    ? [
        unseen.length === 0 && children.every(({ phase }) => phase === 'ready'),
        children.some(({ phase }) => phase === 'stalled') || unseen.some(({ forbidden }) => forbidden),
      ]
    : [verdict.current && verdict.word === 'Ready', verdict.current && verdict.word === 'Stalled'];
  return { ...tree, state: isReady ? 'ready' : isStuck ? 'stuck' : 'pending' };
}

/** Returns lines on what isn't ready yet and, once there were some, on what has become of it. */
function progressOf({ resource, byChildren, state }: Tree, hasBegun: boolean): Line[] {
  if (!resource) return [];
  return [
    ...(byChildren || (!hasBegun && state === 'ready') ? [] : [resourceLine(resource)]),
    ...resource.children.flatMap((child) => [
      ...(hasBegun || child.phase !== 'ready' ? [childLine(child)] : []),
      ...child.pods.filter(({ message }) => message !== undefined).map(podLine),
    ]),
  ];
}

function reasonsOf({ name, resource, byChildren, state }: Tree, when: string): string[] {
  if (state === 'ready') return [];
  if (!resource) return [`${name} isn't ready${when}`, '  it is gone'];
  const { children, notes } = resource;
  const lines = [
    ...(byChildren ? [] : [resourceLine(resource)]),
    ...children.filter(({ phase }) => phase !== 'ready').map(childLine),
    ...children.flatMap(({ pods }) => pods.filter(({ ready }) => !ready).map(podLine)),
  ];
  const reasons = [...lines.map(([, text]) => text), ...notes].map((line) => `  ${line}`);
  return [`${name} isn't ready${when}`, ...reasons];
}
