import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { Change } from '../../contract/change.js';
import type { Render } from '../../contract/kind.js';
import { describeRef, refOf } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import { ApiError, classify } from '../../engine/api-error.js';
import { Api } from '../../engine/api.js';
import { carryOutOnce } from '../../engine/preview/once.js';
import { putResource } from '../../engine/preview/resource.js';
import { visible } from '../../engine/preview/visible.js';
import type { InstalledOperator } from '../../install/installed-operators.js';
import type { CustomResourceInput } from '../../synth/custom-resource.js';
import { previewGiven, readGiven } from '../diff/compare.js';
import type { CompareProps, Given } from '../diff/compare.js';
import { CliError } from '../exit.js';
import { keptLine, lineOf, refusalLine } from './lines.js';

const FIELD_MANAGER = 'reconstruct-apply';

const FIRST_PAUSE_MILLISECONDS = 250;
const LONGEST_PAUSE_MILLISECONDS = 2_000;

export interface ApplyProps extends Omit<CompareProps, 'contextFor' | 'refuse' | 'blocking'> {
  readonly render: Render;
  /** Who looks after a custom resource. @default - nobody, as far as can be seen */
  readonly operatorOf: (given: Given) => Promise<InstalledOperator | undefined>;
  /** Whether what isn't rendered any more is deleted. */
  readonly prune: boolean;
  /** For how long what fails, and may pass by itself, is tried again. */
  readonly patienceMilliseconds: number;
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
 * **Guarantees.** Nothing is written unless all of them are valid and every dry run has succeeded.
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
  let failures = 0;
  for (const one of all) failures += await applyOne(one, props);
  if (failures > 0)
    throw new CliError(`${failures} ${failures === 1 ? 'object was' : 'objects were'} refused`, 3);
  return all;
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
async function applyOne({ given, operator }: Applied, props: ApplyProps): Promise<number> {
  const { transport, tell } = props;
  const written = await write(given, new Api(transport));
  await tell(lineOf(written.change));
  if (operator) {
    await tell(`${describeRef(refOf(given.after))} is left to the operator in ${operator.namespace}`);
    return 0;
  }
  const controllers = given.input.kind.controllers({ render: props.render });
  let failures = 0;
  for (const controller of controllers) {
    const { changes, kept, error } = await refusedAs(describeRef(refOf(written.cr)), () =>
      carryOutOnce(written.cr, {
        ...{ controller, transport, prune: props.prune, now: () => new Date() },
        pause: patience(props.patienceMilliseconds),
      }),
    );
    for (const change of changes) await tell(lineOf(change));
    for (const ref of kept) await tell(keptLine(ref));
    if (error) await tell(`${describeRef(refOf(written.cr))} can't be rendered: ${error.message}`);
    failures += changes.filter(({ action }) => action === 'failed').length + (error ? 1 : 0);
  }
  return failures;
}

interface Written {
  readonly change: Change;
  /** In the version that is stored. */
  readonly cr: AnyObject;
}

async function write({ input, before, after }: Given, api: Api): Promise<Written> {
  const { kind, cr, document, type, live } = input;
  const ref = refOf(after);
  if (before && isDeepStrictEqual(visible(before), visible(after)))
    return { change: { ref, action: 'unchanged' }, cr: before };
  const wanted = { ...(document.value as AnyObject), metadata: cr.metadata };
  const stored = await refusedAs(describeRef(ref), () =>
    putResource(api, type, wanted, { live, fieldManager: FIELD_MANAGER }),
  );
  return {
    change: { ref, action: before ? 'configured' : 'created' },
    cr: { ...stored, apiVersion: kind.type.apiVersion },
  };
}

async function refusedAs<T>(what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.code === 409)
      throw new CliError(`${what} has changed meanwhile; look at it, and give the command again`, 3);
    throw classify(error, `Apply ${what}`);
  }
}

/** Longer pauses each time, until the time is over. */
function patience(milliseconds: number): (tries: number) => Promise<boolean> {
  const deadline = performance.now() + milliseconds;
  return async (tries) => {
    const pause = Math.min(FIRST_PAUSE_MILLISECONDS * 2 ** (tries - 1), LONGEST_PAUSE_MILLISECONDS);
    if (performance.now() + pause > deadline) return false;
    await delay(pause);
    return true;
  };
}
