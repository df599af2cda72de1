import { APPLIED_HASH_ANNOTATION, childrenFieldManager } from '../../../../src/contract/names.js';
import type { AnyObject } from '../../../../src/contract/object.js';
import { appService } from '../../../../src/kinds/app-service/kind.js';
import type { NodePorts } from './node-ports.js';
import type { Spec } from './shape.js';

type Json = Readonly<Record<string, unknown>>;

interface ManagedFields {
  readonly manager: string;
  readonly operation: string;
  readonly subresource?: string;
  readonly apiVersion: string;
  readonly fieldsV1: Json;
}

/** A custom resource whose children are compared. */
export interface Compared {
  readonly name: string;
  readonly uid: string;
  /** As planned; what it doesn't give is the cluster's to choose. */
  readonly spec: Spec;
  readonly nodePorts: NodePorts;
}

/** What the cluster writes to a Deployment. */
const CLUSTER_ANNOTATIONS = [APPLIED_HASH_ANNOTATION, 'deployment.kubernetes.io/revision'];

/**
 * A live child without what makes it this one child, and without what the cluster chooses: whatever is left is equal for
 * two custom resources with the same spec. What the cluster chooses and the spec doesn't give is told as `chosen`, so
 * that it still counts whether it is there. The fields that the controller owns stand beside it.
 */
export function comparable(object: AnyObject, cr: Compared): unknown {
  const { labels, annotations = {}, ownerReferences, finalizers } = object.metadata as Meta;
  const kept = Object.entries(annotations).filter(([key]) => !CLUSTER_ANNOTATIONS.includes(key));
  const told = {
    metadata: {
      ...{ name: object.metadata.name, labels, annotations: Object.fromEntries(kept), finalizers },
      ownerReferences,
    },
    spec: specOf(object, cr),
    owned: ownedFields(object),
  };
  return JSON.parse(JSON.stringify(told).replaceAll(cr.name, '<name>').replaceAll(cr.uid, '<uid>'));
}

type Meta = AnyObject['metadata'] & { readonly finalizers?: readonly string[] };

function ownedFields(object: AnyObject): unknown {
  const { managedFields = [] } = object.metadata as { readonly managedFields?: readonly ManagedFields[] };
  const own = childrenFieldManager(appService.type.kind);
  return managedFields
    .filter(({ manager }) => manager === own)
    .map(({ operation, subresource, apiVersion, fieldsV1 }) => ({
      operation,
      subresource,
      apiVersion,
      fieldsV1,
    }));
}

function specOf({ kind, spec }: AnyObject, cr: Compared): Json {
  if (kind === 'Service') return serviceSpec(spec as Json, cr);
  const { replicas, ...others } = spec as Json;
  // With an autoscaler, how many replicas there are is its decision.
  return kind === 'Deployment' && cr.spec.autoscaling === undefined ? { ...others, replicas } : others;
}

const CHOSEN = ['clusterIP', 'clusterIPs', 'healthCheckNodePort'];

function serviceSpec(spec: Json, cr: Compared): Json {
  const chosen = CHOSEN.filter((key) => spec[key] !== undefined).map((key) => [key, 'chosen']);
  const ports = (spec.ports as readonly ServicePort[]).map((port) => withToldNodePort(port, cr));
  return { ...spec, ...(Object.fromEntries(chosen) as Json), ports };
}

interface ServicePort {
  readonly port: number;
  readonly protocol?: string;
  readonly nodePort?: number;
}

function withToldNodePort(port: ServicePort, { spec, nodePorts }: Compared): Json {
  if (port.nodePort === undefined) return { ...port };
  const asked = (spec.ports as readonly ServicePort[] | undefined)?.find(
    (one) => one.port === port.port && (one.protocol ?? 'TCP') === port.protocol,
  );
  return {
    ...port,
    nodePort: asked?.nodePort === undefined ? 'chosen' : nodePorts.plannedPort(port.nodePort),
  };
}
