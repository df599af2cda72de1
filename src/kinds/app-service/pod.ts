import type { V1PodSpec } from '@kubernetes/client-node';
import { container } from './container.js';
import { volumes } from './files.js';
import { given } from './given.js';
import type { Identity } from './metadata.js';
import { podSecurity } from './security.js';
import type { AppServiceSpec } from './spec.js';
import { spreadConstraints } from './topology.js';
import type { Wire } from './wire.js';

/** @throws OperatorError `PortNameConflict` */
export function podSpec(app: Identity, spec: AppServiceSpec): Wire<V1PodSpec> {
  const { files, topologySpread } = spec;
  const topologySpreadConstraints = topologySpread && spreadConstraints(app, topologySpread);
  return {
    containers: [container(app.name, spec)],
    ...given(spec, 'imagePullSecrets', 'serviceAccountName', 'terminationGracePeriodSeconds'),
    ...podSecurity(spec),
    ...(files?.length && { volumes: volumes(files) }),
    ...(topologySpreadConstraints?.length && { topologySpreadConstraints }),
  };
}
