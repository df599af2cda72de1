import type { ApplyStep } from '../contract/controller.js';
import { controllerOf, objectKey } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { isTwinOf } from './ownership.js';
import type { StoreReader } from './stores.js';

/**
 * Keeps a plan from making objects while one of its objects belongs to a custom resource of the same kind and name in
 * another API group.
 *
 * **Guarantees.** Two that are created at once don't divide the objects between them, so that neither ever had them all
 * and each waited for the other. Who makes the first object of the plan has them; what exists already is put right as
 * ever.
 *
 * **Assumptions.** Both plan their first object under the same type and name.
 */
export class Twin {
  private met: boolean;

  constructor(
    steps: readonly ApplyStep[],
    private readonly reader: StoreReader,
  ) {
    this.met = steps.some((step) => this.isInTheWay(step));
  }

  /** To be told of each step that has failed: the other may have made its object meanwhile. */
  failed(step: ApplyStep): void {
    this.met ||= this.isInTheWay(step);
  }

  /** Whether a step would make an object that has to wait. */
  holds(step: ApplyStep): boolean {
    return this.met && step.owner !== undefined && this.known(step) === undefined;
  }

  private isInTheWay(step: ApplyStep): boolean {
    if (!step.owner) return false;
    const known = this.known(step);
    const controller = known && controllerOf(known);
    return controller !== undefined && isTwinOf(controller, step.owner);
  }

  private known({ object }: ApplyStep): AnyObject | undefined {
    if (!this.reader.watches(object)) return undefined;
    const { namespace, name } = object.metadata;
    return this.reader.get(object, objectKey(namespace, name));
  }
}
