import type { V1Container } from '@kubernetes/client-node';
import { containerPorts } from './container-ports.js';
import { volumeMounts } from './files.js';
import { given } from './given.js';
import { containerSecurity } from './security.js';
import type { AppServiceSpec, Probes } from './spec.js';
import type { Wire } from './wire.js';

/** @throws OperatorError `PortNameConflict` */
export function container(name: string, spec: AppServiceSpec): Wire<V1Container> {
  const { ports, envs, files, preStop } = spec;
  return {
    name,
    image: spec.image,
    imagePullPolicy: spec.imagePullPolicy ?? 'IfNotPresent',
    ...given(spec, 'command', 'args', 'workingDir', 'resources', 'envFrom'),
    ...(ports?.length && { ports: containerPorts(ports) }),
    ...(envs?.length && { env: envs }),
    ...(files?.length && { volumeMounts: volumeMounts(files) }),
    ...probes(spec.probes),
    ...(preStop && { lifecycle: { preStop } }),
    ...containerSecurity(spec.securityProfile),
  };
}

/** None is made up: a probe that doesn't fit an application stops or restarts it. */
function probes({ readiness, liveness, startup }: Probes = {}): Partial<Wire<V1Container>> {
  return {
    ...(readiness && { readinessProbe: readiness }),
    ...(liveness && { livenessProbe: liveness }),
    ...(startup && { startupProbe: startup }),
  };
}
