import { isDeepStrictEqual } from 'node:util';
import { describeRef, refOf } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import { groupKind } from '../../contract/resource.js';
import { collection } from '../cluster.js';
import type { Place } from '../cluster.js';
import { eventually } from '../eventually.js';
import type { Normal } from './normal.js';
import { describeSteps, valueAt, withValueAt } from './owned-leaves.js';
import type { Steps } from './owned-leaves.js';
import { typeOf } from './surroundings.js';
import type { Trial } from './trial.js';

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
