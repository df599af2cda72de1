import { isDeepStrictEqual } from 'node:util';
import { messageOf } from '../../contract/error.js';
import { isHashAnnotation } from '../../contract/names.js';
import { describeRef, refOf } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import { groupKind } from '../../contract/resource.js';
import { collection } from '../cluster.js';
import type { Place } from '../cluster.js';
import { eventually } from '../eventually.js';
import { becomes, rolledOut, fresh } from './convergence.js';
import { ownEntries, leavesOf, describeSteps, valueAt, withValueAt } from './normal.js';
import type { Normal, Steps } from './normal.js';
import { attempt, ENOUGH, several, shortest } from './outcome.js';
import type { Failure, Outcome } from './outcome.js';
import type { Sample, Stand } from './stand.js';
import { typeOf } from './stand.js';
import type { Trial } from './trial.js';

/** An engine takes more than five corrections of one object for a fight, and pauses; a new one has forgotten them. */
const BETWEEN_STARTS = 4;
const ANEW_MILLISECONDS = 10_000;

/** Every owned field of every object is put right when somebody changes it, and every object made anew. */
export async function drift(stand: Stand): Promise<Outcome> {
  if (stand.types.length === 0) return { tried: '', failures: [], notApplicable: 'it makes no objects' };
  const counts = { changed: 0, refused: 0, removed: 0, left: 0 };
  const failures = await several(stand.samples, async (sample) => {
    const found: Failure[] = [];
    found.push(...(await attempt(stand, (trial) => driftFields(trial, sample, counts, found))));
    found.push(...(await attempt(stand, (trial) => removeObjects(trial, sample, counts))));
    return found;
  });
  const { changed, refused, removed, left } = counts;
  const leaving = left > 0 ? `, ${left} of them left to whoever takes a shared one, which is told` : '';
  const tried = `${changed} fields changed${leaving}, ${refused} that the API server lets nobody change, ${removed} objects removed`;
  const nothing = changed + refused + removed === 0 && failures.flat().length === 0;
  return {
    ...{ tried, failures: shortest(failures.flat()) },
    ...(nothing && { notApplicable: 'no sample leads to an object' }),
  };
}

interface Counts {
  changed: number;
  refused: number;
  removed: number;
  left: number;
}

async function driftFields(trial: Trial, sample: Sample, counts: Counts, failures: Failure[]): Promise<void> {
  await trial.start();
  await trial.create(sample);
  await rolledOut(trial);
  const begun = [...trial.steps];
  const fate = await trial.fate();
  for (const object of await trial.objects()) {
    let corrections = 0;
    for (const steps of fieldsOf(object)) {
      if (failures.length >= ENOUGH) return;
      if (corrections > 0 && corrections % BETWEEN_STARTS === 0) await trial.restart();
      const outcome = await driftOne(new DriftedField(trial, object, steps, fate));
      if (outcome === 'refused') {
        counts.refused++;
        continue;
      }
      corrections++;
      counts.changed++;
      if (outcome === 'left') counts.left++;
      else if (outcome !== 'corrected')
        failures.push({ what: outcome.what, sequence: [...begun, outcome.step] });
    }
  }
}

/** What ties it to its owner is left alone: an object without that is somebody else's. */
function fieldsOf(object: AnyObject): Steps[] {
  return ownEntries(object)
    .flatMap(({ fieldsV1 }) => leavesOf(fieldsV1))
    .filter((steps) => {
      const [first, second, third] = steps;
      if (first !== 'metadata') return true;
      return second !== 'ownerReferences' && !(typeof third === 'string' && isHashAnnotation(third));
    });
}

type DriftOutcome = 'corrected' | 'left' | 'refused' | { readonly what: string; readonly step: string };

/** What is asked of a field: a `DriftedField`. */
export type Drifted = Pick<
  DriftedField,
  'description' | 'place' | 'in' | 'object' | 'put' | 'isBack' | 'requireBack'
>;

/** Others write it, and it is waited for. That it isn't put right, is told where the wait has run out, and else what went wrong. */
export async function driftOne(field: Drifted): Promise<DriftOutcome> {
  const old = field.in(await field.object());
  for (const put of othersThan(old)) {
    if (!(await field.put(put))) continue;
    const to = put === undefined ? 'nothing' : JSON.stringify(put);
    try {
      if (await field.isBack(old)) return 'corrected';
      // What is shared isn't forced; but when it is given up again, it has to be as before.
      await field.put(undefined);
      await field.requireBack(old);
      return 'left';
    } catch (error) {
      const what = error instanceof NotBack ? `${field.description} isn't put right` : messageOf(error);
      return { what, step: `somebody sets ${field.place} to ${to}` };
    }
  }
  return 'refused';
}

/** Values to put in its place, of which the API server may take none. */
function othersThan(value: unknown): unknown[] {
  if (typeof value === 'boolean') return [!value];
  if (typeof value === 'number') return [value + 1, value - 1, undefined];
  if (typeof value !== 'string') return [undefined];
  const bumped = value.replace(/\d/, (digit) => String((Number(digit) + 1) % 10));
  return [...(bumped === value ? [] : [bumped]), `${value}-x`, `${value}x`, undefined];
}

async function removeObjects(trial: Trial, sample: Sample, counts: Counts): Promise<void> {
  await trial.start();
  await trial.create(sample);
  await trial.settled();
  const begun = trial.steps.length;
  for (const object of (await trial.objects()).filter((one) => trial.scene.isMadeAnew(one))) {
    trial.steps.splice(begun);
    await trial.remove(object);
    counts.removed++;
    await eventually(
      async () => {
        const again = (await trial.objects()).find(
          (one) => groupKind(one) === groupKind(object) && one.metadata.name === object.metadata.name,
        );
        if (!again || again.metadata.uid === object.metadata.uid)
          throw new Error(`${object.kind} isn't made anew when somebody deletes it`);
      },
      { deadlineMilliseconds: trial.pace.scaled(ANEW_MILLISECONDS) },
    );
    await becomes(trial, await fresh(trial.stand, sample));
  }
}

/** To write an object that others write too. */
const MOST_ATTEMPTS = 50;
const BACK_MILLISECONDS = 8_000;

/** It was waited for long enough, and still isn't as it was. */
export class NotBack extends Error {}

/** A field of an object that the operator has applied. */
export class DriftedField {
  private readonly isShared: boolean;

  constructor(
    private readonly trial: Trial,
    private readonly of: AnyObject,
    private readonly steps: Steps,
    /** Of the custom resource, while nobody has changed anything. */
    private readonly fate: Normal,
  ) {
    this.isShared = trial.scene.isShared(of);
  }

  get description(): string {
    return `${this.of.kind}: ${describeSteps(this.steps)}`;
  }

  get place(): string {
    return `${describeSteps(this.steps)} of ${describeRef(refOf(this.of))}`;
  }

  in(object: AnyObject): unknown {
    return valueAt(object, this.steps);
  }

  object(): Promise<AnyObject> {
    return this.trial.stand.cluster.get(this.where());
  }

  /** Somebody writes it. @returns whether it has another value for it */
  async put(value: unknown): Promise<boolean> {
    const { type, namespace, name } = this.where();
    const path = `${collection(type, namespace)}/${name}`;
    const query = { fieldManager: 'somebody' };
    for (let attempt = 1; ; attempt++) {
      const object = await this.object();
      const body = withValueAt(object, this.steps, value);
      const answer = await this.trial.stand.cluster.send('PUT', path, { body, query });
      // Its status may have changed in between, which refuses nothing.
      if (answer.status === 409 && attempt < MOST_ATTEMPTS) continue;
      return answer.status < 300 && !isDeepStrictEqual(this.in(answer.body), this.in(object));
    }
  }

  /** Waits for it. @returns false where it is shared and left as it is, and the status tells that */
  isBack(old: unknown): Promise<boolean> {
    return this.soon(async () => {
      if (await this.isAsBefore(old)) return true;
      if (this.isShared) {
        await this.trial.settled();
        if (!(await this.isAsBefore(old)) && !(await this.faresAsBefore())) return false;
      }
      throw new NotBack('it is as somebody has set it');
    });
  }

  requireBack(old: unknown): Promise<void> {
    return this.soon(async () => {
      if (!(await this.isAsBefore(old))) throw new NotBack('it is as somebody has left it');
    });
  }

  /** Of what others may take, the status has to be right again too. */
  private async isAsBefore(old: unknown): Promise<boolean> {
    if (!isDeepStrictEqual(this.in(await this.object()), old)) return false;
    return !this.isShared || this.faresAsBefore();
  }

  private async faresAsBefore(): Promise<boolean> {
    return isDeepStrictEqual(await this.trial.fate(), this.fate);
  }

  private where(): Place {
    const { trial, of } = this;
    const { namespace = trial.namespace, name } = of.metadata;
    const type = trial.stand.types.find((one) => groupKind(one) === groupKind(of)) ?? typeOf(of);
    return { type, namespace, name };
  }

  private soon<T>(probe: () => Promise<T>): Promise<T> {
    const { pace, stand } = this.trial;
    const deadlineMilliseconds = pace.scaled(BACK_MILLISECONDS) + 4 * stand.settleMilliseconds;
    return eventually(probe, { deadlineMilliseconds });
  }
}
