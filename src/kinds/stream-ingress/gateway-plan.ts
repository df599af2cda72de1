import type { ChangeSet } from '../../contract/change.js';
import type { Plan, Reader } from '../../contract/controller.js';
import type { OperatorError } from '../../contract/error.js';
import type { RenderedKind } from '../../contract/kind.js';
import type { AnyObject } from '../../contract/object.js';
import { childrenOf, dropChildren, planChildren } from './gateway-children.js';
import type { ChildPlan } from './gateway-children.js';
import { programmedByGateway, refsByGateway } from './gateway-programmed.js';
import type { StreamIngress } from './spec.js';
import type { Findings } from './status.js';
import type { GatewayTarget } from './targets.js';
import type { View } from './view.js';

/** What is done for the custom resources of a Gateway, and what can be said of each afterwards. */
export interface GatewayPlan extends Pick<Plan, 'apply' | 'delete'> {
  /** Nobody's failed apply may keep what has to go. */
  readonly deleteFirst: true;
  readonly findings: (cr: StreamIngress, changes: ChangeSet) => Pick<Findings, 'programmed' | 'resolution'>;
}

export function planGateway(
  target: GatewayTarget,
  view: View,
  rendering: RenderedKind,
  render: (cr: StreamIngress) => readonly AnyObject[],
  reader: Reader,
): GatewayPlan {
  const { claims } = view;
  const childrenNow = (cr: StreamIngress): AnyObject[] => childrenOf(rendering, cr, reader);
  const plans = new Map<StreamIngress, ChildPlan>();
  for (const cr of claims.refused.keys()) plans.set(cr, dropChildren(childrenNow(cr)));
  for (const cr of claims.holders)
    plans.set(cr, planChildren(cr, view.resolution(cr), childrenNow(cr), render));
  const open = claims.holders.filter((cr) => plans.get(cr)?.open);
  const excess = beyond(target, open, (cr) => childrenNow(cr).length > 0);
  for (const cr of excess) plans.set(cr, dropChildren(childrenNow(cr)));
  return {
    apply: [...plans.values()].flatMap(({ apply }) => apply),
    delete: [...plans.values()].flatMap((plan) => plan.delete),
    deleteFirst: true,
    findings: (cr, changes) => {
      if (excess.has(cr)) return { programmed: tooMany(target) };
      const children = childrenNow(cr);
      const mirrored = view.resolution(cr).status === 'True' ? refsByGateway(children) : undefined;
      return {
        programmed: programmedByGateway(children, plans.get(cr)?.error ?? failureOf(cr, rendering, changes)),
        ...(mirrored && { resolution: mirrored }),
      };
    },
  };
}

/**
 * Those for whom there is no room; whoever is open stays open, also where an older one would come in.
 * @param wanted those whose port is to be open, the oldest first; who only waits takes nobody's place
 */
function beyond(
  { maxListeners = Infinity }: GatewayTarget,
  wanted: readonly StreamIngress[],
  isOpen: (cr: StreamIngress) => boolean,
): ReadonlySet<StreamIngress> {
  if (wanted.length <= maxListeners) return new Set();
  const ordered = [...wanted.filter(isOpen), ...wanted.filter((cr) => !isOpen(cr))];
  return new Set(ordered.slice(maxListeners));
}

function tooMany({ name, maxListeners }: GatewayTarget): NonNullable<Findings['programmed']> {
  const message = `the target ${name} has its ${maxListeners ?? 0} ports open already; this one is opened once another is closed`;
  return { type: 'Programmed', status: 'False', reason: 'TooManyListeners', message };
}

function failureOf(
  { metadata }: StreamIngress,
  { children }: RenderedKind,
  changes: ChangeSet,
): OperatorError | undefined {
  const failed = changes.find(
    ({ ref, error }) =>
      error &&
      ref.name === metadata.name &&
      ref.namespace === metadata.namespace &&
      children.some(({ kind }) => kind === ref.kind),
  );
  return failed?.error;
}
