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
    ...given(spec, 'imagePullSecrets', 'terminationGracePeriodSeconds'),
    ...serviceAccount(spec),
    ...podSecurity(spec),
    ...(files?.length && { volumes: volumes(files) }),
    ...(topologySpreadConstraints?.length && { topologySpreadConstraints }),
  };
}

/**
 * Under its deprecated name too: the API server copies the name there, and from there back again once ours is no longer
 * given, so that a service account could never be given up.
 * @see https://github.com/kubernetes/kubernetes/issues/108208
 */
function serviceAccount({ serviceAccountName }: AppServiceSpec): Partial<Wire<V1PodSpec>> {
  return serviceAccountName === undefined ? {} : { serviceAccountName, serviceAccount: serviceAccountName };
}
