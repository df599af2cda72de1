import { isDeepStrictEqual } from 'node:util';
import type { Change } from '../../contract/change.js';
import { OperatorError } from '../../contract/error.js';
import { objectKey, refOf } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import { ApiError } from '../../engine/api-error.js';
import { Api } from '../../engine/api.js';
import { putResource } from '../../engine/preview/resource.js';
import { visible } from '../../engine/preview/visible.js';
import type { Transport } from '../../engine/transport.js';
import { find, inStoredVersion } from '../diff/compare.js';
import type { Given } from '../diff/compare.js';

const FIELD_MANAGER = 'reconstruct-apply';

/** How often a custom resource is written whose status others write at the same time. */
const TRIES = 10;

export interface Written {
  readonly change: Change;
  /** In the version that is stored. */
  readonly cr: AnyObject;
}

/**
 * Writes a custom resource in place of the one that it was tried over.
 * @throws ApiError where the API server refuses it; OperatorError `Conflict` where somebody has changed more of it than
 *   its status, has deleted it or made one of that name
 */
export async function write(given: Given, transport: Transport): Promise<Written> {
  const { input, before, after } = given;
  const ref = refOf(after);
  if (before && isDeepStrictEqual(visible(before), visible(after)))
    return { change: { ref, action: 'unchanged' }, cr: before };
  const stored = await putOver(given, transport);
  return { change: { ref, action: before ? 'configured' : 'created' }, cr: inStoredVersion(input, stored) };
}

async function putOver({ input, live: tried }: Given, transport: Transport): Promise<AnyObject> {
  const { cr, document, type } = input;
  const wanted = { ...(document.value as AnyObject), metadata: cr.metadata };
  let live = tried;
  for (let tries = 1; ; tries++) {
    try {
      return await putResource(new Api(transport), type, wanted, { live, fieldManager: FIELD_MANAGER });
    } catch (error) {
      if (!(error instanceof ApiError) || !isOutOfDate(error, live)) throw error;
      live = await find(transport, type, objectKey(cr.metadata.namespace, cr.metadata.name));
      if (tries === TRIES || !isAsTried(tried, live)) throw changed(tried, live);
    }
  }
}

function isOutOfDate(error: ApiError, live: AnyObject | undefined): boolean {
  const isGone = live !== undefined && error.code === 404 && !error.kindNotServed;
  return isGone || error.code === 409 || error.wrongUid;
}

/** Whether nothing has changed that was tried over: the status is nobody's but the controller's. */
function isAsTried(tried: AnyObject | undefined, live: AnyObject | undefined): boolean {
  return tried !== undefined && live !== undefined && isDeepStrictEqual(triedOver(tried), triedOver(live));
}

function triedOver({ metadata: { uid, labels = {}, annotations = {} }, spec }: AnyObject): object {
  return { uid, labels, annotations, spec };
}

function changed(tried: AnyObject | undefined, live: AnyObject | undefined): OperatorError {
  const what = live ? (tried ? 'changed' : 'made by somebody else') : 'deleted';
  const message = `it was ${what} meanwhile; look at it, and give the command again`;
  return new OperatorError({ reason: 'Conflict', message });
}
