import type { V1ServiceSpec } from '@kubernetes/client-node';
import { selectorLabels } from '../../contract/names.js';
import { DEFAULT_PROTOCOL } from './container-ports.js';
import { given } from './given.js';
import type { Identity } from './metadata.js';
import type { AppServiceSpec, ServiceOptions } from './spec.js';
import type { Wire } from './wire.js';

export type ServiceType = NonNullable<ServiceOptions['type']>;

/** As the tutorial has it. */
const DEFAULT_TYPE: ServiceType = 'NodePort';

/** The type of the Service; undefined where there is none. */
export function serviceType({ ports, service }: AppServiceSpec): ServiceType | undefined {
  return ports?.length ? (service?.type ?? DEFAULT_TYPE) : undefined;
}

/** Each port passes through whole, so that fields which Kubernetes adds later arrive too. No ports, no Service. */
export function serviceSpec({ name, kind }: Identity, spec: AppServiceSpec): Wire<V1ServiceSpec> | undefined {
  const type = serviceType(spec);
  if (!type) return undefined;
  return {
    type,
    ...given(spec.service ?? {}, 'sessionAffinity', 'externalTrafficPolicy', 'trafficDistribution'),
    selector: selectorLabels(kind, name),
    ports: (spec.ports ?? []).map((port) => ({
      ...port,
      protocol: port.protocol ?? DEFAULT_PROTOCOL,
      targetPort: port.targetPort ?? port.port,
    })),
  };
}
