import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { Action, Change } from '../../contract/change.js';
import { OperatorError } from '../../contract/error.js';
import type { Render } from '../../contract/kind.js';
import { describeRef, objectKey, refOf } from '../../contract/object.js';
import type { AnyObject, ObjectRef } from '../../contract/object.js';
import { Api } from '../../engine/api.js';
import { ApiError, classify } from '../../engine/api-error.js';
import type { ObjectPreview } from '../../engine/preview/preview.js';
import { carryOutOnce } from '../../engine/preview/planning.js';
import { putResource } from '../../engine/preview/dry-run.js';
import { visible } from '../../engine/preview/dry-run.js';
import type { Transport } from '../../engine/transport.js';
import type { InstalledOperator } from '../../install/installed.js';
import type { CustomResourceInput } from '../../synth/custom-resource.js';
import { find, inStoredVersion, previewGiven, readGiven } from '../diff/compare.js';
import type { CompareProps, Given } from '../diff/compare.js';
import { CliError } from '../exit.js';

const FIRST_PAUSE_MILLISECONDS = 250;
const LONGEST_PAUSE_MILLISECONDS = 2_000;
const PATIENCE_MILLISECONDS = 10_000;

export interface ApplyProps extends Omit<CompareProps, 'contextFor' | 'refuse' | 'blocking'> {
  readonly render: Render;
  /** Who looks after a custom resource. @default - nobody, as far as can be seen */
  readonly operatorOf: (given: Given) => Promise<InstalledOperator | undefined>;
  /** Whether what isn't rendered any more is deleted. */
  readonly prune: boolean;
  /**
   * Until when what fails, and may pass by itself, is tried again, by `performance.now()`.
   * @default - for ten seconds of writing
   */
  readonly deadline?: number;
  /** What has become of an object, in a line. */
  readonly tell: (line: string) => Promise<void>;
}

/** A custom resource that was applied, and who does the rest. */
export interface Applied {
  readonly given: Given;
  readonly operator: InstalledOperator | undefined;
}

/**
 * Applies custom resources and, where nobody else does, what follows from them.
 *
 * **Guarantees.** Nothing is written unless all of them are valid and every dry run has succeeded. One that can't be
 * written after all keeps none of the others from being written, and what stays unwritten is told.
 *
 * @throws InputError with what is wrong with them; CliError with exit code 3 where the cluster doesn't answer, or refuses
 */
export async function applyResources(props: ApplyProps): Promise<Applied[]> {
  const compareProps: CompareProps = {
    ...props,
    contextFor: () => Promise.resolve({ render: props.render }),
    ...{ refuse: refusal, blocking: true },
  };
  const given = await readGiven(compareProps);
  const all: Applied[] = [];
  for (const one of given) all.push({ given: one, operator: await props.operatorOf(one) });
  const own = all.flatMap((one) => (one.operator ? [] : [one.given]));
  const { objects } = await previewGiven(own, compareProps);
  const refused = objects.filter(({ action }) => action === 'failed').map(refusalLine);
  if (refused.length > 0) throw new CliError([...refused, 'Nothing was written'], 3);
  await writeAll(all, { ...props, deadline: props.deadline ?? performance.now() + PATIENCE_MILLISECONDS });
  return all;
}

type Timed = ApplyProps & { readonly deadline: number };

async function writeAll(all: readonly Applied[], props: Timed): Promise<void> {
  let failures = 0;
  for (const [index, one] of all.entries()) {
    try {
      failures += await applyOne(one, props);
    } catch (error) {
      for (const { given } of all.slice(index + 1)) await props.tell(`${nameOf(given)} isn't written`);
      throw error;
    }
  }
  if (failures > 0)
    throw new CliError(`${failures} ${failures === 1 ? 'object was' : 'objects were'} refused`, 3);
}

function nameOf({ after }: Given): string {
  return describeRef(refOf(after));
}

/** What needs somebody who stays: it depends on all of its kind, and on the time. */
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
async function applyOne({ given, operator }: Applied, props: Timed): Promise<number> {
  const { transport, tell } = props;
  const name = nameOf(given);
  let written: Written;
  try {
    written = await write(given, transport);
  } catch (error) {
    const what = operator ? `${name} isn't written` : `${name} isn't written, nor what is made of it`;
    await tell(`${what}: ${reasonOf(error, name)}`);
    return 1;
  }
  await tell(lineOf(written.change));
  if (operator) {
    await tell(`${name} is left to the operator in ${operator.namespace}`);
    return 0;
  }
  try {
    return await applyChildren(written, given, props);
  } catch (error) {
    await tell(`What is made of ${name} isn't written, or not all of it: ${reasonOf(error, name)}`);
    return 1;
  }
}

/** @returns how many objects were refused */
async function applyChildren({ cr }: Written, { input }: Given, props: Timed): Promise<number> {
  const { transport, tell, prune, deadline } = props;
  let failures = 0;
  for (const controller of input.kind.controllers({ render: props.render })) {
    const pause = patience(deadline);
    const once = { controller, transport, prune, now: () => new Date(), pause };
    const { changes, kept, error } = await carryOutOnce(cr, once);
    for (const change of changes) await tell(lineOf(change));
    for (const ref of kept) await tell(keptLine(ref));
    if (error) await tell(`${describeRef(refOf(cr))} can't be rendered: ${error.message}`);
    failures += changes.filter(({ action }) => action === 'failed').length + (error ? 1 : 0);
  }
  return failures;
}

/** @throws what isn't a refusal */
function reasonOf(error: unknown, name: string): string {
  if (error instanceof OperatorError && error.reason !== 'Unreachable') return error.message;
  if (error instanceof ApiError) return classify(error, `Apply ${name}`).message;
  throw error;
}

/** Longer pauses each time, until the time is over. */
function patience(deadline: number): (tries: number) => Promise<boolean> {
  return async (tries) => {
    const pause = Math.min(FIRST_PAUSE_MILLISECONDS * 2 ** (tries - 1), LONGEST_PAUSE_MILLISECONDS);
    if (performance.now() + pause > deadline) return false;
    await delay(pause);
    return true;
  };
}

const SAYING: Readonly<Record<Action, string>> = {
  ...{ created: 'created', configured: 'configured', corrected: 'configured', unchanged: 'unchanged' },
  ...{ recreated: 'deleted and made anew', deleted: 'pruned', failed: 'refused' },
  skipped: 'left as it is, since something before it failed',
};

/** What has become of an object, in a line. */
function lineOf({ ref, action, error }: Change): string {
  const why = error ? `: ${error.reason}: ${error.message}` : '';
  return `${describeRef(ref)} ${SAYING[action]}${why}`;
}

/** Of one that nobody makes any more. */
function keptLine(ref: ObjectRef): string {
  return `${describeRef(ref)} left as it is: it isn't rendered any more, and --prune deletes it`;
}

/** Why an object can't be had, as its dry run has shown. */
function refusalLine({ ref, error }: ObjectPreview): string {
  return `${describeRef(ref)} would be refused: ${error ? `${error.reason}: ${error.message}` : ''}`;
}

const FIELD_MANAGER = 'reconstruct-apply';

/** How often a custom resource is written whose status others write at the same time. */
const TRIES = 10;

interface Written {
  readonly change: Change;
  /** In the version that is stored. */
  readonly cr: AnyObject;
}

/**
 * Writes a custom resource in place of the one that it was tried over.
 * @throws ApiError where the API server refuses it; OperatorError `Conflict` where somebody has changed more of it than
 *   its status, has deleted it or made one of that name
 */
async function write(given: Given, transport: Transport): Promise<Written> {
  const { input, before, after } = given;
  const ref = refOf(after);
  if (before && isDeepStrictEqual(visible(before), visible(after)))
    return { change: { ref, action: 'unchanged' }, cr: before };
  const stored = await putOver(given, transport);
  return { change: { ref, action: before ? 'configured' : 'created' }, cr: inStoredVersion(input, stored) };
}

async function putOver({ input, live: tried }: Given, transport: Transport): Promise<AnyObject> {
  const { cr, document, type } = input;
  const wanted = { ...(document.value as AnyObject), metadata: cr.metadata };
  let live = tried;
  for (let tries = 1; ; tries++) {
    try {
      return await putResource(new Api(transport), type, wanted, { live, fieldManager: FIELD_MANAGER });
    } catch (error) {
      if (!(error instanceof ApiError) || !isOutOfDate(error, live)) throw error;
      live = await find(transport, type, objectKey(cr.metadata.namespace, cr.metadata.name));
      if (tries === TRIES || !isAsTried(tried, live)) throw changed(tried, live);
    }
  }
}

function isOutOfDate(error: ApiError, live: AnyObject | undefined): boolean {
  const isGone = live !== undefined && error.code === 404 && !error.kindNotServed;
  return isGone || error.code === 409 || error.wrongUid;
}

/** Whether nothing has changed that was tried over: the status is nobody's but the controller's. */
function isAsTried(tried: AnyObject | undefined, live: AnyObject | undefined): boolean {
  return tried !== undefined && live !== undefined && isDeepStrictEqual(triedOver(tried), triedOver(live));
}

function triedOver({ metadata: { uid, labels = {}, annotations = {} }, spec }: AnyObject): object {
  return { uid, labels, annotations, spec };
}

function changed(tried: AnyObject | undefined, live: AnyObject | undefined): OperatorError {
  const what = live ? (tried ? 'changed' : 'made by somebody else') : 'deleted';
  const message = `it was ${what} meanwhile; look at it, and give the command again`;
  return new OperatorError({ reason: 'Conflict', message });
}
