import type { V1Deployment } from '@kubernetes/client-node';
import { handOverReplicas, identityOf, managersOf } from '../../contract/hand-over.js';
import type { HandOver, HandOverFunction } from '../../contract/hand-over.js';
import type { Wire } from '../../contract/kubernetes-types.js';
import { childrenFieldManager } from '../../contract/names.js';
import type { AnyObject } from '../../contract/object.js';
import type { AppServiceSpec } from './spec.js';

/** Returns what passes from one field manager to another before the children are applied; nothing, once that is done. */
export const handOver: HandOverFunction<AppServiceSpec> = ({ cr, children }) => {
  const deployment = children.find(
    ({ kind, metadata }) => kind === 'Deployment' && metadata.name === cr.metadata.name,
  );
  if (!deployment || deployment.metadata.deletionTimestamp) return [];
  const { strategy } = deployment as AnyObject & { readonly strategy?: KeptStrategy };
  return [
    ...(cr.spec.autoscaling ? handOverReplicas({ cr, children: [deployment], start: cr.spec.size }) : []),
    ...(strategy ? strategySteps(strategy, cr.spec.strategy, identityOf(deployment)) : []),
  ];
};

type Strategy = NonNullable<AppServiceSpec['strategy']>;
type RollingUpdate = NonNullable<Strategy['rollingUpdate']>;

/** Takes the API server's default out of the way of `Recreate`, and lets go. */
const STRATEGY_FIELD_MANAGER = 'appservice-strategy';

const CHILDREN_FIELD_MANAGER = childrenFieldManager('AppService');

/** The API server fills this in for a rolling update. */
const DEFAULT_ROLLING_UPDATE = { maxSurge: '25%', maxUnavailable: '25%' };
/** One of these has no value in common with what another writer has set, or with the default. */
const OTHER_ROLLING_UPDATES = [1, 2, 3].map((size) => ({ maxSurge: size, maxUnavailable: size }));

/** A Deployment's strategy, and its owners. */
export interface KeptStrategy {
  readonly type?: string;
  /** Kept only where another writer has set it. */
  readonly rollingUpdate?: RollingUpdate;
  readonly typeManagers: readonly string[];
  readonly rollingUpdateManagers: readonly string[];
}

/**
 * Renders a strategy as given; but a rolling update that says nothing else says the default too. What no one owns stays
 * when the type changes, and beside `Recreate` it is refused: so what is rendered at all is rendered such that it goes as
 * a whole.
 */
export function strategyOf(strategy: Strategy): Strategy {
  const isBare = strategy.type === 'RollingUpdate' && !strategy.rollingUpdate;
  return isBare ? { ...strategy, rollingUpdate: DEFAULT_ROLLING_UPDATE } : strategy;
}

export function keepStrategy(object: AnyObject): KeptStrategy {
  const { type, rollingUpdate } = (object as unknown as Wire<V1Deployment>).spec?.strategy ?? {};
  const rollingUpdateManagers = managersOf(object, 'f:spec', 'f:strategy', 'f:rollingUpdate');
  const own = [CHILDREN_FIELD_MANAGER, STRATEGY_FIELD_MANAGER];
  return {
    ...(type !== undefined && { type }),
    ...(rollingUpdate &&
      rollingUpdateManagers.some((manager) => !own.includes(manager)) && { rollingUpdate }),
    typeManagers: managersOf(object, 'f:spec', 'f:strategy', 'f:type'),
    rollingUpdateManagers,
  };
}

/**
 * Plans the steps from a rolling update to `Recreate`, which is refused beside values of a rolling update that aren't ours
 * alone: own them, so that they go with the change of the type; change the type; and once our main field manager has it
 * too, let go. Values of another writer are taken by force, and replaced by other values, since of equal ones there would
 * be two owners.
 */
function strategySteps(
  { type, typeManagers, rollingUpdate: taken, rollingUpdateManagers }: KeptStrategy,
  wanted: Strategy | undefined,
  identity: AnyObject,
): HandOver[] {
  const owners = [...typeManagers, ...rollingUpdateManagers];
  const force = owners.some((manager) => manager !== STRATEGY_FIELD_MANAGER);
  const step = (strategy?: object): HandOver => ({
    object: { ...identity, ...(strategy && { spec: { strategy } }) },
    fieldManager: STRATEGY_FIELD_MANAGER,
    ...(strategy && force && { force }),
  });
  const isWanted = wanted?.type === 'Recreate';
  const isHeld = owners.includes(STRATEGY_FIELD_MANAGER);
  if (isHeld && (!isWanted || typeManagers.includes(CHILDREN_FIELD_MANAGER))) return [step()];
  // What is ours alone goes when we stop to apply it.
  const isOursAlone =
    rollingUpdateManagers.length > 0 &&
    rollingUpdateManagers.every((manager) => manager === CHILDREN_FIELD_MANAGER);
  if (!isWanted || type !== 'RollingUpdate' || isOursAlone) return [];
  const unlike = OTHER_ROLLING_UPDATES.find(
    ({ maxSurge, maxUnavailable }) =>
      maxSurge !== taken?.maxSurge && maxUnavailable !== taken?.maxUnavailable,
  );
  const rollingUpdate = (taken && unlike) ?? DEFAULT_ROLLING_UPDATE;
  return [step({ rollingUpdate }), step({ type: 'Recreate' })];
}
