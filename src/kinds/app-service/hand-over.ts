import type { HandOver, HandOverFunction } from '../../contract/hand-over.js';
import { childrenFieldManager } from '../../contract/names.js';
import type { AnyObject } from '../../contract/object.js';
import type { KeptDeployment } from './keep.js';
import type { AppServiceSpec } from './spec.js';
import { strategySteps } from './strategy.js';

/** Holds `spec.replicas` from when the controller lets go of it until the autoscaler writes it. */
export const REPLICAS_FIELD_MANAGER = 'appservice-replicas';

const CHILDREN_FIELD_MANAGER = childrenFieldManager('AppService');

/** What passes from one field manager to another before the children are applied; nothing, once that is done. */
export const handOver: HandOverFunction<AppServiceSpec> = ({ cr, children }) => {
  const deployment = children.find(
    ({ kind, metadata }) => kind === 'Deployment' && metadata.name === cr.metadata.name,
  );
  if (!deployment || deployment.metadata.deletionTimestamp) return [];
  const kept = deployment as AnyObject & Partial<KeptDeployment>;
  const identity = identityOf(deployment);
  return [
    ...(cr.spec.autoscaling ? replicasSteps(kept, cr.spec.size, identity) : []),
    ...(kept.strategy ? strategySteps(kept.strategy, cr.spec.strategy, identity) : []),
  ];
};

/**
 * Hands `spec.replicas` of the Deployment over to its autoscaler.
 *
 * A field that its only owner stops to apply falls back to the API server's default, here 1: without this, setting
 * `autoscaling` would take an application down to one replica until the autoscaler corrects it. So another field
 * manager says the value that is there before ours stops to. A Deployment that was made without the field has that 1
 * too, and gets `size` in the same way. In the other direction nothing is needed: once `autoscaling` is removed,
 * `size` is applied and takes the field back.
 *
 * @see https://kubernetes.io/docs/reference/using-api/server-side-apply/#transferring-ownership
 */
function replicasSteps(kept: Partial<KeptDeployment>, size: number, identity: AnyObject): HandOver[] {
  const replicas = replicasToHold(kept, size);
  if (replicas === undefined) return [];
  return [{ object: { ...identity, spec: { replicas } }, fieldManager: REPLICAS_FIELD_MANAGER }];
}

/** Undefined where another manager has the field already, so that it keeps its value whoever lets go of it. */
function replicasToHold(
  { spec, replicasManagers }: Partial<KeptDeployment>,
  size: number,
): number | undefined {
  if (!replicasManagers) return undefined;
  if (replicasManagers.length === 0) return size;
  return replicasManagers.every((manager) => manager === CHILDREN_FIELD_MANAGER) ? spec?.replicas : undefined;
}

/** With the uid, so that what is deleted meanwhile doesn't come back. */
function identityOf({ apiVersion, kind, metadata }: AnyObject): AnyObject {
  const { name, namespace, uid } = metadata;
  return { apiVersion, kind, metadata: { name, ...(namespace && { namespace }), ...(uid && { uid }) } };
}
