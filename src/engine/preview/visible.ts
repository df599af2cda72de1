import { isHashAnnotation } from '../../contract/names.js';
import type { AnyObject } from '../../contract/object.js';

/** What the API server keeps for itself, and changes with every write. */
const SERVERS_OWN: readonly string[] = [
  ...['managedFields', 'resourceVersion', 'generation', 'uid', 'creationTimestamp', 'selfLink'],
];

/** What `kubectl apply` keeps for itself: a copy of the object, secrets included. */
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

/**
 * What people mean by an object: without what the API server, this project and `kubectl` keep in it for themselves, and
 * without the status.
 */
export function visible({ status, ...object }: AnyObject): AnyObject {
  const metadata = Object.entries(object.metadata)
    .filter(([name]) => !SERVERS_OWN.includes(name))
    .flatMap(([name, value]) => {
      if (name === 'annotations') return nonEmpty(name, visibleAnnotations(value as object));
      if (name === 'ownerReferences') return [[name, (value as object[]).map(withoutBlocking)] as const];
      return [[name, value] as const];
    });
  return { ...object, metadata: Object.fromEntries(metadata) as unknown as AnyObject['metadata'] };
}

function visibleAnnotations(annotations: object): object {
  return Object.fromEntries(
    Object.entries(annotations).filter(([name]) => !isHashAnnotation(name) && name !== LAST_APPLIED),
  );
}

function nonEmpty(name: string, value: object): (readonly [string, object])[] {
  return Object.keys(value).length === 0 ? [] : [[name, value]];
}

/** See the caveats of `DryRun`. */
function withoutBlocking(owner: object): object {
  const { blockOwnerDeletion, ...rest } = owner as { blockOwnerDeletion?: unknown };
  return rest;
}

interface ServicePort {
  readonly port?: unknown;
  readonly protocol?: unknown;
  readonly nodePort?: unknown;
}

interface ServiceSpec {
  readonly ports?: readonly ServicePort[];
  readonly [field: string]: unknown;
}

const PICKED: readonly string[] = ['clusterIP', 'clusterIPs', 'healthCheckNodePort'];

/**
 * What a dry run came to, without what the API server has picked for it: addresses and node ports that nobody has asked
 * for, and that would be others in the end.
 * @param wanted what was applied
 */
export function withoutPicks(after: AnyObject, before: AnyObject | undefined, wanted: AnyObject): AnyObject {
  if (after.kind !== 'Service' || after.apiVersion !== 'v1') return after;
  const [spec, was, asked] = [after, before, wanted].map((object) => (object?.spec ?? {}) as ServiceSpec);
  if (!spec || !was || !asked) return after;
  const known = [...(was.ports ?? []), ...(asked.ports ?? [])];
  const isKnown = (port: ServicePort): boolean =>
    known.some((other) => other.nodePort === port.nodePort && other.port === port.port);
  const ports = spec.ports?.map((port) => {
    if (port.nodePort === undefined || isKnown(port)) return port;
    const { nodePort, ...rest } = port;
    return rest;
  });
  const others = Object.entries(spec).filter(
    ([name]) => !PICKED.includes(name) || name in was || name in asked,
  );
  return { ...after, spec: { ...Object.fromEntries(others), ...(ports && { ports }) } };
}
