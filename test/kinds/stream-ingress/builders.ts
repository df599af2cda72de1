import type { AnyObject } from '../../../src/contract/object.js';
import { portKey } from '../../../src/kinds/stream-ingress/spec.js';
import type {
  Holding,
  KeptConfigMap,
  KeptEntry,
  KeptTargetService,
  OpenPort,
  SharedState,
} from '../../../src/kinds/stream-ingress/watched.js';
import { API_VERSION, KIND } from '../../../src/kinds/stream-ingress/spec.js';
import type { Protocol, StreamIngress, StreamIngressSpec } from '../../../src/kinds/stream-ingress/spec.js';
import { NGINX_RESERVED_PORTS } from '../../../src/kinds/stream-ingress/targets.js';
import type { GatewayTarget, NginxTarget } from '../../../src/kinds/stream-ingress/targets.js';

export const MANAGER = 'streamingress-controller';

const bounds = { maxListeners: 1000, maxListenersPerNamespace: 100 };

export const target: NginxTarget = {
  kind: 'IngressNginx',
  name: 'default',
  ingressNamespace: 'ingress-nginx',
  ingressService: 'ingress-nginx-controller',
  tcpServicesConfigMap: 'tcp-services',
  udpServicesConfigMap: 'udp-services',
  reservedPorts: NGINX_RESERVED_PORTS,
  ...bounds,
};

export const gateway: GatewayTarget = {
  kind: 'Gateway',
  name: 'edge',
  gateway: 'gateways/edge',
  reservedPorts: [],
  ...bounds,
};

export interface Given extends Partial<Omit<StreamIngressSpec, 'upstream'>> {
  readonly name?: string;
  readonly namespace?: string;
  readonly upstream?: Partial<StreamIngressSpec['upstream']>;
  /** A minute of one hour; the lower, the older. @default 0 */
  readonly minute?: number;
  readonly deleting?: boolean;
  readonly status?: object;
}

/** `shop/web`, which opens 9000/TCP for `shop/db:5432`, unless something else is given. */
export function streamIngress(given: Given = {}): StreamIngress {
  const { name = 'web', namespace = 'shop', upstream, minute = 0, deleting, status, ...spec } = given;
  const time = `2026-01-01T00:${String(minute).padStart(2, '0')}:00Z`;
  return {
    apiVersion: API_VERSION,
    kind: KIND,
    metadata: {
      ...{ name, namespace, uid: `${namespace}/${name}`, generation: 1, creationTimestamp: time },
      ...(deleting && { deletionTimestamp: time }),
    },
    spec: { protocol: 'TCP', listen: 9000, ...spec, upstream: { service: 'db', port: 5432, ...upstream } },
    ...(status && { status }),
  };
}

export const OURS: Holding = { ours: true, others: [] };

export function heldBy(...others: readonly string[]): Holding {
  return { ours: false, others };
}

export interface StateProps {
  readonly tcp?: Readonly<Record<string, KeptEntry>>;
  readonly udp?: Readonly<Record<string, KeptEntry>>;
  readonly open?: readonly OpenPort[];
  readonly service?: Partial<KeptTargetService> | null;
}

/** The shared objects: both ConfigMaps and the Service are there, and have what is given. */
export function shared({ tcp = {}, udp = {}, open = [], service = {} }: StateProps = {}): SharedState {
  return {
    configMaps: { TCP: kept(tcp), UDP: kept(udp) },
    service:
      service === null
        ? undefined
        : {
            ...{ ports: [], addresses: [], managed: open.some(({ ours }) => ours) },
            open: Object.fromEntries(open.map((port) => [portKey(port.port, port.protocol), port])),
            ...service,
          },
  };
}

function kept(entries: Readonly<Record<string, KeptEntry>>): KeptConfigMap {
  return { entries, managed: Object.values(entries).some(({ ours }) => ours) };
}

/** A port of the target's Service, as we write it. */
export function openPort(port: number, protocol: Protocol = 'TCP', holding: Holding = OURS): OpenPort {
  return { name: `si-${port}-${protocol.toLowerCase()}`, port, protocol, targetPort: port, ...holding };
}

/** An entry of `metadata.managedFields`. */
export function managed(manager: string, fieldsV1: object, operation: 'Apply' | 'Update' = 'Apply') {
  return { manager, operation, apiVersion: 'v1', fieldsType: 'FieldsV1', fieldsV1 };
}

export function object(
  kind: string,
  name: string,
  rest: Readonly<Record<string, unknown>> & { readonly metadata?: object } = {},
): AnyObject {
  const { metadata, ...fields } = rest;
  const [namespace = '', own = ''] = name.split('/');
  return {
    apiVersion: 'v1',
    kind,
    metadata: { namespace, name: own, uid: `${kind} ${name}`, resourceVersion: '1', ...metadata },
    ...fields,
  };
}
