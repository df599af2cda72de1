import { describeRef } from '../../contract/object.js';
import type { Clock, Timer } from '../../engine/clock.js';
import type { StatusDocument } from '../status/document.js';
import type { Failure } from './log-line.js';

/** By then the status is written and seen, if it is. */
const HELD_MILLISECONDS = 2_000;

export interface HeldWarningsProps {
  readonly clock: Clock;
  readonly tell: (text: string) => void;
}

interface Held {
  readonly failure: Failure;
  readonly timer: Timer;
}

/**
 * What the controller warns of, told after two seconds, unless the status of the custom resource says it: one mistake is one
 * line. A status that can't be written says nothing, so the warning does.
 */
export class HeldWarnings {
  private readonly held = new Set<Held>();
  private resources: StatusDocument['resources'] = [];

  constructor(private readonly props: HeldWarningsProps) {}

  warned(text: string, failure: Failure): void {
    if (this.isSaid(failure)) return;
    const timer = this.props.clock.setTimer(HELD_MILLISECONDS, () => {
      this.held.delete(held);
      this.props.tell(text);
    });
    const held: Held = { failure, timer };
    this.held.add(held);
  }

  document({ resources }: StatusDocument): void {
    this.resources = resources;
    for (const held of this.held) {
      if (!this.isSaid(held.failure)) continue;
      held.timer.cancel();
      this.held.delete(held);
    }
  }

  /** Of a controller that has ended. */
  clear(): void {
    for (const { timer } of this.held) timer.cancel();
    this.held.clear();
  }

  private isSaid({ of, cause }: Failure): boolean {
    return this.resources.some(
      (resource) => describeRef(resource) === of && resource.verdict.message.includes(cause),
    );
  }
}
