import { randomBytes, randomInt } from 'node:crypto';
import type { Drift } from '../../contract/change.js';
import { OperatorError } from '../../contract/error.js';
import { heldCertificates, isCurrent, issueCertificates } from '../../values/certificates.js';
import type { HeldCertificates } from '../../values/certificates.js';
import {
  composedNames,
  composedOf,
  composedRecord,
  isMadeFor,
  makeValue,
  presentKeys,
  rotationRecord,
  sourcesOf,
} from '../../values/generated.js';
import { describeThrown, reading } from '../../values/origin.js';
import { ADOPT_BY_ANNOTATION, COMPOSED_ANNOTATION, GENERATED_ANNOTATION } from '../../contract/names.js';
import { controllerOf, describeRef, refOf } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import type { GenerateStep } from '../../contract/plan.js';
import { ApiError, classify } from '../../client/api-error.js';
import type { StepHandler } from '../plan/hand.js';
import type { Entry } from '../watch/cache.js';
import {
  changedMeanwhile,
  checkNotTerminating,
  checkRefusal,
  countApply,
  fightId,
  isHandedOver,
  remembered,
  taskOf,
} from './apply.js';
import type { StepOutcome, Task } from './apply.js';
import { refresh } from './delete.js';
import { checkOwner, checkOwnership, isOrphan, removeLeftover } from './owner.js';
import type { OwnedTask } from './owner.js';
import { isMap } from '../../values/json.js';

/**
 * Makes the values that a Secret lacks, or all of them for a rotation.
 *
 * **Guarantees.** A value that was stored is replaced by a rotation alone, once, whatever answer is lost and however late
 * the cache is: a Secret is created only where there is none, and changed only as it was read for that.
 */
export const generate: StepHandler<GenerateStep> = {
  do: 'generate',

  async carryOut(step, hand) {
    const { object, owner, values, texts, certificates = {} } = step;
    const task: GenerateTask = {
      ...taskOf(step, hand),
      owner,
      values,
      certificates,
      ...(texts && { texts }),
    };
    return { ref: refOf(object), ...(await makeValues(task)) };
  },
};

interface GenerateTask
  extends OwnedTask, Pick<GenerateStep, 'values' | 'texts'>, Required<Pick<GenerateStep, 'certificates'>> {}

async function makeValues(task: GenerateTask): Promise<StepOutcome> {
  const { object, fieldManager, owner, values, certificates, hand, store, key, intent } = task;
  const { api, reader, memory } = hand;
  const { fights } = memory;
  const type = reader.resourceType(intent);
  let known = store.get(key);
  known = known && (await removeLeftover(task, known));
  checkRefusal(task, known);
  fights.checkPause(fightId(task), task.hash);
  const write = async (send: () => Promise<AnyObject>, outcome: 'created' | 'changed') => {
    const answer = await store.write(key, hand.writer, async () => ({ object: await send() }));
    countApply(task, outcome);
    return answer.object;
  };
  const by = { fieldManager };
  try {
    if (!known) {
      const all = { names: Object.keys(values), due: Object.keys(certificates), held: {}, isRotation: false };
      const { data, annotations } = await contentOf(all, task);
      const made = Object.keys(data);
      await checkOwner(task);
      const metadata = {
        ...intent.metadata,
        annotations: { ...intent.metadata.annotations, ...annotations },
      };
      const whole = { ...intent, metadata, data };
      await write(async () => api.create(type, whole, by), 'created');
      return ofStored({ action: 'created', made }, () => {
        fights.wasCreated(fightId(task), object, task.hash);
      });
    }
  } catch (error) {
    if (!(error instanceof ApiError) || !error.alreadyExists) throw judged(task, known, error);
  }
  const live = await refresh(object, hand);
  if (!live) throw changedMeanwhile(object);
  // Generated values aren't applied, so nothing more can be asked of an orphan.
  if (!isOrphan(live, owner)) checkOwnership(live, owner);
  checkNotTerminating(live);
  const body = lacking(live, task);
  if (!body) return { action: 'unchanged' };
  // Whether a Secret was restored is judged by the plan, of the version that it has seen.
  const isSeen = known?.object.metadata.resourceVersion === live.metadata.resourceVersion;
  if (!body.drift && !isSeen) throw changedMeanwhile(object);
  try {
    const { data, annotations } = await contentOf(body, task, live);
    const { metadata } = body.patch;
    const patch = {
      ...body.patch,
      ...{ metadata: { ...metadata, annotations: { ...metadata.annotations, ...annotations } }, data },
    };
    const stored = await write(async () => api.mergePatch(type, key, patch, by), 'changed');
    if (lacking(stored, task)) throw notKept(stored);
    const { drift } = body;
    const made = Object.keys(data).filter((name) => data[name] !== null);
    return ofStored({ action: 'configured', made }, () => {
      if (drift) fights.corrected(fightId(task), object, drift, task.hash);
    });
  } catch (error) {
    if (!(error instanceof ApiError) || (!error.conflict && !error.objectIsGone))
      throw judged(task, store.get(key), error);
    await refresh(object, hand);
    throw changedMeanwhile(object, error);
  }
}

/** Makes values; the same each time for a dry run, which isn't stored. */
function dataOf(names: readonly string[], { values, hand }: GenerateTask): Readonly<Record<string, string>> {
  const random = hand.isDry ? () => 0 : (below: number): number => randomInt(below);
  const encoded = (name: string): string =>
    Buffer.from(makeValue(values[name] ?? {}, random)).toString('base64');
  return Object.fromEntries(names.map((name) => [name, encoded(name)]));
}

/** Returns the data that are written: values and certificates that are made, texts of all values, and null for texts that are dropped. */
async function contentOf(
  { names, due, held, isRotation }: Lacking,
  task: GenerateTask,
  live?: AnyObject,
): Promise<{
  readonly data: Readonly<Record<string, string | null>>;
  readonly annotations?: Readonly<Record<string, string>>;
}> {
  const { values, texts, certificates, intent, hand } = task;
  const present = isMap(live?.data) ? live.data : {};
  const requests = Object.entries(certificates).filter(([name]) => due.includes(name));
  const how = { due: requests, before: held, now: hand.clock.now(), isRotation };
  const made = { ...dataOf(names, task), ...(await issueCertificates(present, how)) };
  if (!texts) return { data: made };
  const sources = sourcesOf(values, { ...present, ...made });
  const all: Record<string, string> = {};
  for (const [name, value] of Object.entries(sources))
    all[name] = Buffer.from(String(value), 'base64').toString();
  let composed: Readonly<Record<string, string>>;
  try {
    composed = reading([{ ...intent, data: sources }], () => texts.compose(all));
  } catch (cause) {
    const message = `The texts of ${describeRef(intent)} can't be made: ${describeThrown(cause)}`;
    throw new OperatorError({ reason: 'RenderFailed', message, isBug: true, cause });
  }
  const encoded = Object.fromEntries(
    Object.entries(composed).map(([name, text]) => [name, Buffer.from(text).toString('base64')]),
  );
  const dropped = live ? composedNames(live).filter((name) => !Object.hasOwn(sources, name)) : [];
  const key = hand.isDry ? '' : randomBytes(8).toString('hex');
  return {
    data: { ...Object.fromEntries(dropped.map((name) => [name, null])), ...made, ...encoded },
    annotations: {
      [COMPOSED_ANNOTATION]: composedRecord(texts.template, key, { sources, names: Object.keys(encoded) }),
    },
  };
}

function judged(task: Task, known: Entry | undefined, error: unknown): OperatorError {
  const failure = classify(error, `Make the values of ${describeRef(task.intent)}`);
  countApply(task, failure.reason);
  return remembered(task, known, failure);
}

/** Returns the outcome of values that were stored, also where that makes the object contested: the event names them. */
function ofStored(outcome: StepOutcome, count: () => void): StepOutcome {
  try {
    count();
    return outcome;
  } catch (error) {
    return { ...outcome, action: 'failed', error: classify(error, '') };
  }
}

function notKept(secret: AnyObject): OperatorError {
  const what = `values, owner, labels or annotation ${GENERATED_ANNOTATION}`;
  const message = `${describeRef(secret)} was stored without all of its ${what}, as by a mutating webhook; exclude the Secret from the webhook`;
  return new OperatorError({ reason: 'Refused', message });
}

/** Patch of a Secret's metadata. */
interface SecretPatch {
  readonly metadata: { readonly annotations: Readonly<Record<string, string | null>> };
}

/** Values and certificates that a Secret lacks. */
interface Lacking {
  /** Names of values. */
  readonly names: readonly string[];
  /** Names of certificates that are missing, out of date or unusable. */
  readonly due: readonly string[];
  readonly held: HeldCertificates;
  readonly isRotation: boolean;
}

/** Returns what a Secret lacks, and the patch of its metadata; nothing where all is as it should be. */
function lacking(
  live: AnyObject,
  { owner, intent, values, texts, certificates, hand }: GenerateTask,
): (Lacking & { readonly patch: SecretPatch; readonly drift?: Drift }) | undefined {
  const { apiVersion, kind, metadata } = live;
  const { namespace, name, uid, resourceVersion, labels = {}, ownerReferences = [] } = metadata;
  const [was, wanted] = [live, intent].map((object) => object.metadata.annotations?.[GENERATED_ANNOTATION]);
  // Values that were there before ours are kept until the next rotation.
  const isRotation = was !== undefined && !isMadeFor(wanted, was);
  const data = isMap(live.data) ? live.data : {};
  const present = presentKeys(values, data);
  const lost = texts ? composedNames(live).filter((name) => !Object.hasOwn(data, name)) : [];
  const names = Object.keys(values).filter((name) => isRotation || !present.includes(name));
  const held = heldCertificates(data, Object.keys(certificates));
  const now = hand.clock.now();
  const due = Object.entries(certificates).flatMap(([name, request]) =>
    isRotation || !isCurrent(held[name], request, now) ? [name] : [],
  );
  const isOwned = controllerOf(live)?.uid === owner.uid;
  const wantedLabels = Object.entries(intent.metadata.labels ?? {});
  const isLabelled = wantedLabels.every(([label, text]) => labels[label] === text);
  const fields = [
    ...[...names, ...lost].map((name) => `.data.${name}`),
    ...due.flatMap((name) => (held[name] ? [] : [`.data.${name}.crt`])),
    ...(isOwned ? [] : ['.metadata.ownerReferences']),
    ...(isLabelled ? [] : ['.metadata.labels']),
    ...(was === undefined ? [`.metadata.annotations.${GENERATED_ANNOTATION}`] : []),
  ];
  const isOutdated = texts !== undefined && composedOf(live, values) !== texts.template;
  if (fields.length === 0 && due.length === 0 && !isOutdated) return undefined;
  const owners = [...ownerReferences, ...(isOwned ? [] : [owner])];
  const annotations = {
    ...intent.metadata.annotations,
    ...(isHandedOver(live, owner) && { [ADOPT_BY_ANNOTATION]: null }),
    [GENERATED_ANNOTATION]: isRotation ? rotationRecord(wanted ?? '', was) : (was ?? wanted ?? ''),
  };
  const changes = { labels: intent.metadata.labels, annotations, ownerReferences: owners };
  // Refused with a conflict where it has changed since.
  const identity = { namespace, name, uid, resourceVersion };
  const patch = { apiVersion, kind, metadata: { ...identity, ...changes } };
  const drift = !isRotation && fields.length > 0 && { drift: { managers: [], fields } };
  return { ...{ names, due, held, isRotation, patch }, ...drift };
}
