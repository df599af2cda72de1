import type { V1DeploymentSpec } from '@kubernetes/client-node';
import { given } from './given.js';
import { childMetadata, podSelector } from './metadata.js';
import type { Identity } from './metadata.js';
import { podSpec } from './pod.js';
import type { AppServiceSpec } from './spec.js';
import type { Wire } from './wire.js';

/**
 * While there is an autoscaler, `replicas` is its field and isn't rendered: whoever renders it takes it back at each
 * apply. How it changes hands without a dip is in `hand-over.ts`.
 * @throws OperatorError `PortNameConflict`
 */
export function deploymentSpec(app: Identity, spec: AppServiceSpec): Wire<V1DeploymentSpec> {
  return {
    ...(!spec.autoscaling && { replicas: spec.size }),
    ...given(spec, 'strategy', 'minReadySeconds', 'progressDeadlineSeconds'),
    selector: podSelector(app),
    template: { metadata: { labels: childMetadata(app).labels }, spec: podSpec(app, spec) },
  };
}
