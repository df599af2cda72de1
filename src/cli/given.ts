import { messageOf, OperatorError } from '../contract/error.js';
import { describeRef, keyOf } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { ApiError } from '../client/api-error.js';
import { Api } from '../client/api.js';
import { retried, TRIES } from '../client/retry.js';
import type { Transport } from '../client/transport.js';
import { DryRun } from '../engine/preview/dry-run.js';
import type { GivenResource } from '../engine/preview/preview.js';
import { readCustomResources } from '../validate/custom-resource.js';
import type { CustomResourceInput, ReadOptions } from '../validate/custom-resource.js';
import { placeOf } from '../validate/document.js';
import { InputError } from '../validate/problem.js';
import { notInstalled } from './cluster.js';

/** A custom resource of a file, as it is in the cluster and as it would be. */
export interface Given extends GivenResource {
  /** The live object is that on which it was tried. */
  readonly input: CustomResourceInput;
}

/**
 * Reads custom resources, as the API server would store them, found out by dry runs.
 * @param refuse returns why a valid one is refused, and what to do about it
 * @throws InputError with their mistakes; ApiError where the cluster refuses
 */
export async function readGiven(
  props: Omit<ReadOptions, 'live'> & { readonly transport: Transport },
  refuse: (input: CustomResourceInput) => string | undefined = () => undefined,
): Promise<Given[]> {
  const { transport } = props;
  const api = new Api(new DryRun(transport));
  const inputs = await readCustomResources({
    ...props,
    live: (type, key) =>
      api.find(type, key).catch((error: unknown) => {
        throw error instanceof ApiError && error.kindNotServed ? notInstalled([type.kind]) : error;
      }),
  });
  const refused = inputs.flatMap((input) => {
    const why = refuse(input);
    return why === undefined ? [] : [`${placeOf(input.document, ['kind'])}: ${why}`];
  });
  if (refused.length > 0) throw new InputError(refused);
  const given: Given[] = [];
  for (const input of inputs)
    try {
      const { stored: after, live } = await putOver(input, api, 'reconstruct-diff');
      const { apiVersion } = input.kind.type;
      given.push(
        live ? { input: { ...input, live }, before: { ...live, apiVersion }, after } : { input, after },
      );
    } catch (error) {
      refused.push(refusalOf(error, input));
    }
  if (refused.length > 0) throw new InputError(refused);
  return given;
}

/** Returns why the API server doesn't take a custom resource. @throws the error where that isn't due to the file */
function refusalOf(error: unknown, { document }: CustomResourceInput): string {
  if (error instanceof OperatorError && error.reason === 'Conflict')
    return `${placeOf(document, error.path)}: ${error.message}`;
  if (error instanceof ApiError && error.meaning.retry === 'onChange')
    return `${placeOf(document, [])}: the API server refuses it: ${messageOf(error)}`;
  if (error instanceof ApiError && error.objectIsGone)
    return `${placeOf(document, ['metadata', 'namespace'])}: ${messageOf(error)}; create it before, or name another`;
  throw error;
}

/**
 * Puts a custom resource over the live one, and again over what that has become meanwhile, such as by a status. The file is the
 * whole of the wanted object; labels and annotations are laid over those that are there already.
 * @param check throws where what it has become must not be overwritten
 * @returns the answer in the stored version
 */
export async function putOver(
  { kind, cr, document, type, live: first }: CustomResourceInput,
  api: Api,
  fieldManager: string,
  check: (live: AnyObject | undefined) => void = () => undefined,
): Promise<{ readonly stored: AnyObject; readonly live: AnyObject | undefined }> {
  const { status: _, ...wanted }: AnyObject = { ...(document.value as AnyObject), metadata: cr.metadata };
  const { apiVersion } = kind.type;
  let live = first;
  const attempt = async () => {
    checkPreconditions(wanted, live);
    const body = live ? { ...wanted, metadata: metadataOver(live.metadata, wanted.metadata) } : wanted;
    const answer = await api.put(type, body, { fieldManager, exists: live !== undefined });
    // One in another version doesn't have the defaults of the stored one.
    const stored = type.apiVersion === apiVersion ? answer : { ...answer, apiVersion, spec: cr.spec };
    return { stored, live };
  };
  return retried(TRIES.conflict, attempt, async (error) => {
    const isOutOfDate =
      error instanceof ApiError &&
      (error.conflict || error.wrongUid || (live !== undefined && error.objectIsGone));
    if (!isOutOfDate) return false;
    live = await api.find(type, keyOf(cr));
    check(live);
    return true;
  });
}

type Metadata = AnyObject['metadata'];

function metadataOver(live: Metadata, wanted: Metadata): Metadata {
  const both = (name: 'labels' | 'annotations') =>
    (live[name] ?? wanted[name]) && { [name]: { ...live[name], ...wanted[name] } };
  return { ...live, ...wanted, ...both('labels'), ...both('annotations') };
}

/** @throws OperatorError `Conflict` where a file was made of another object, or of an earlier state, and says so */
function checkPreconditions(wanted: AnyObject, live: AnyObject | undefined): void {
  for (const field of ['uid', 'resourceVersion'] as const) {
    const given = wanted.metadata[field];
    if (!given || given === live?.metadata[field]) continue;
    const what = !live ? 'none is' : field === 'uid' ? 'another one is' : 'a later state of it is';
    const message =
      `metadata.${field}: ${describeRef(wanted)} is not the one of ${given}: ${what} there; ` +
      'make the change in what is there now, or remove the field';
    throw new OperatorError({ reason: 'Conflict', message, path: ['metadata', field] });
  }
}
