import type { AnyObject } from '../contract/object.js';
import type { ResourceType } from '../contract/resource.js';
import { Api } from '../client/api.js';
import type { Transport } from '../client/transport.js';
import { DryRun } from '../engine/preview/dry-run.js';

/**
 * Returns a custom resource as the API server would store it, found out by a dry run.
 *
 * The file is the whole of the wanted object; labels and annotations are laid over those that are there already.
 *
 * @param live as it is, in the version of the file. @default - none: the object would be new
 * @throws ApiError where the API server refuses it
 */
export async function tryResource(
  transport: Transport,
  type: ResourceType,
  wanted: AnyObject,
  live?: AnyObject,
): Promise<AnyObject> {
  return putResource(new Api(new DryRun(transport)), type, wanted, {
    live,
    fieldManager: 'reconstruct-diff',
  });
}

export interface PutResourceOptions {
  readonly live: AnyObject | undefined;
  readonly fieldManager: string;
}

/**
 * The same, where it is meant. It takes the place of the version that is given as live, and of no other.
 * @throws ApiError where the API server refuses it; 409 where it has changed since
 */
export async function putResource(
  api: Api,
  type: ResourceType,
  { status, ...wanted }: AnyObject,
  { live, fieldManager }: PutResourceOptions,
): Promise<AnyObject> {
  const body = live ? { ...wanted, metadata: metadataOver(live.metadata, wanted.metadata) } : wanted;
  return api.put(type, body, { fieldManager, exists: live !== undefined });
}

function metadataOver(live: AnyObject['metadata'], wanted: AnyObject['metadata']): AnyObject['metadata'] {
  const labels = { ...live.labels, ...wanted.labels };
  const annotations = { ...live.annotations, ...wanted.annotations };
  const { uid, resourceVersion } = live;
  return {
    ...{ ...live, ...wanted },
    ...(uid !== undefined && { uid }),
    ...(resourceVersion !== undefined && { resourceVersion }),
    ...(Object.keys(labels).length > 0 && { labels }),
    ...(Object.keys(annotations).length > 0 && { annotations }),
  };
}
