import type { AnyObject } from '../contract/object.js';
import { ApiError } from './api-error.js';
import type { Api } from './api.js';
import type { Task } from './apply-task.js';
import { nodePortsOf } from './node-ports.js';
import { refresh } from './refresh.js';

/**
 * Asks the API server whether it would take an object as a new one, while the one in whose place it comes is still there.
 *
 * A dry run of a creation passes admission and validation first, and only then meets the object of that name: so
 * `AlreadyExists` says that nothing else is wrong. What the present object holds is no objection to the new one: its node
 * ports and addresses aren't asked for, and its place in a quota, which admission looks at last, is the new one's.
 * @throws ApiError with what else is wrong
 */
export async function checkAcceptable(api: Api, { intent, step, reader }: Task): Promise<void> {
  const live = isService(intent) ? await refresh(api, intent, reader) : undefined;
  try {
    await api.tryCreate(reader.resourceType(intent), withoutHeld(intent, live), step.fieldManager);
  } catch (error) {
    if (!(error instanceof ApiError) || !(error.alreadyExists || error.quotaOfObjects)) throw error;
  }
}

interface ServiceSpec {
  readonly ports?: readonly { readonly nodePort?: number }[];
  readonly clusterIP?: string;
  readonly clusterIPs?: readonly string[];
  readonly healthCheckNodePort?: number;
}

/** An object without the node ports and addresses that the present one has been given. */
function withoutHeld(object: AnyObject, live: AnyObject | undefined): AnyObject {
  if (!live) return object;
  const held = new Set<unknown>(nodePortsOf(live));
  const { ports, clusterIP, clusterIPs, healthCheckNodePort, ...spec } = object.spec as ServiceSpec;
  const has = live.spec as ServiceSpec;
  const addresses = clusterIPs ?? (clusterIP === undefined ? [] : [clusterIP]);
  const isHeld = addresses.every((address) => address !== 'None' && has.clusterIPs?.includes(address));
  return {
    ...object,
    spec: {
      ...spec,
      ...(ports && {
        ports: ports.map(({ nodePort, ...port }) => ({ ...port, ...(!held.has(nodePort) && { nodePort }) })),
      }),
      ...(!isHeld && { clusterIP, clusterIPs }),
      ...(healthCheckNodePort !== has.healthCheckNodePort && { healthCheckNodePort }),
    },
  };
}

function isService({ apiVersion, kind }: AnyObject): boolean {
  return apiVersion === 'v1' && kind === 'Service';
}
