import type { HandOverFunction } from '../../contract/hand-over.js';
import type { AnyObject } from '../../contract/object.js';
import { handOverReplicas, identityOf } from '../../contract/replicas.js';
import type { KeptDeployment } from './keep.js';
import type { AppServiceSpec } from './spec.js';
import { strategySteps } from './strategy.js';

/** What passes from one field manager to another before the children are applied; nothing, once that is done. */
export const handOver: HandOverFunction<AppServiceSpec> = ({ cr, children }) => {
  const deployment = children.find(
    ({ kind, metadata }) => kind === 'Deployment' && metadata.name === cr.metadata.name,
  );
  if (!deployment || deployment.metadata.deletionTimestamp) return [];
  const { strategy } = deployment as AnyObject & Partial<KeptDeployment>;
  return [
    ...(cr.spec.autoscaling ? handOverReplicas({ cr, children: [deployment], start: cr.spec.size }) : []),
    ...(strategy ? strategySteps(strategy, cr.spec.strategy, identityOf(deployment)) : []),
  ];
};
