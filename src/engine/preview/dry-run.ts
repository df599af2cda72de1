import { isDeepStrictEqual } from 'node:util';
import type { FieldConflict } from '../../contract/change.js';
import { OperatorError } from '../../contract/error.js';
import { objectId } from '../../contract/object.js';
import type { AnyObject, OwnerReference } from '../../contract/object.js';
import { ApiError } from '../api-error.js';
import { APPLY } from '../api.js';
import type { ApiRequest, ApiResponse, ApiStream, Transport } from '../transport.js';
import { visible } from './visible.js';

/** What a request fails with that would delete: the object has to go before it is made anew. */
export const WOULD_DELETE = 'WouldDelete';

/** What a request fails with that a webhook doesn't let be tried: nobody knows what would become of it. */
export const DRY_RUN_UNSUPPORTED = 'DryRunUnsupported';

/** Of an object that is written all the time, the last look is as good as any. */
const MOST_LOOKS = 5;

/** What one apply would do. */
export interface Tried {
  /** As it is. @default - it isn't there */
  readonly before?: AnyObject;
  /** As it would be. */
  readonly after: AnyObject;
  /** Fields that would be taken from other managers. */
  readonly takes: readonly FieldConflict[];
}

export interface DryRunProps {
  /**
   * Tries as well that an owner isn't to be deleted before an object, which takes a right that the controller has, and
   * who asks need not have.
   * @default false
   */
  readonly blocking?: boolean;
}

/**
 * The way to an API server on which nothing is written, whoever uses it.
 *
 * **Guarantees.** Reads go through. Whatever else is sent is a dry run. Nothing is deleted, not even as a dry run: what
 * asks for it fails with `WouldDelete`. What can't be tried fails with `DryRunUnsupported`, not as a refusal.
 *
 * **Caveats.** A dry run leaves nothing behind on which the next could build. That an owner isn't to be deleted before
 * an object is tried only where it is asked for.
 */
export class DryRun implements Transport {
  /** The last apply of each object, by `objectId`. */
  readonly tried = new Map<string, Tried>();

  constructor(
    private readonly wire: Transport,
    private readonly props: DryRunProps = {},
  ) {}

  get host(): string {
    return this.wire.host;
  }

  async request(req: ApiRequest): Promise<ApiResponse> {
    if (req.method === 'GET') return this.wire.request(req);
    if (req.method === 'DELETE')
      throw new OperatorError({ reason: WOULD_DELETE, message: 'It would be deleted and made anew' });
    const isWhole = req.contentType === APPLY || req.method === 'POST';
    const body = isWhole && !this.props.blocking ? withoutBlocking(req.body as AnyObject) : req.body;
    const dry = { ...req, body, query: { ...req.query, dryRun: 'All' } };
    return req.contentType === APPLY ? this.apply(dry) : this.try(dry);
  }

  stream(req: ApiRequest): Promise<ApiStream> {
    return Promise.reject(new Error(`${req.path} is not watched here`));
  }

  async close(): Promise<void> {
    return this.wire.close();
  }

  private async apply(req: ApiRequest & { readonly query: object }): Promise<ApiResponse> {
    const body = req.body as AnyObject;
    const { answer, live } = await this.tryOn(req);
    if (answer.status > 299) return answer;
    const after = answer.body as AnyObject;
    const changes = live !== undefined && !isDeepStrictEqual(visible(live), visible(after));
    this.tried.set(objectId(body), {
      ...(live && { before: live }),
      after,
      takes: changes ? await this.takes(req) : [],
    });
    return answer;
  }

  /**
   * An answer has the version that it was tried on. What somebody else has written, or made, since the look is no change
   * of ours.
   */
  private async tryOn(req: ApiRequest): Promise<{ readonly answer: ApiResponse; readonly live?: AnyObject }> {
    for (let looks = 1; ; looks++) {
      const before = await this.wire.request({ method: 'GET', path: req.path });
      const live = before.status === 200 ? (before.body as AnyObject) : undefined;
      const answer = await this.try(req);
      if (looks === MOST_LOOKS || answer.status > 299 || !isOvertaken(live, answer))
        return { answer, ...(live && { live }) };
    }
  }

  private async try(req: ApiRequest): Promise<ApiResponse> {
    const answer = await this.wire.request(req);
    if (answer.status <= 299) return answer;
    const cause = new ApiError(`${req.method} ${req.path}`, answer);
    if (!cause.dryRunUnsupported) return answer;
    throw new OperatorError({ reason: DRY_RUN_UNSUPPORTED, message: cause.message, cause });
  }

  /** What the same apply would run into if it weren't forced. */
  private async takes(req: ApiRequest): Promise<FieldConflict[]> {
    if (req.query?.force !== 'true') return [];
    const unforced = await this.wire.request({ ...req, query: { ...req.query, force: 'false' } });
    return unforced.status === 409 ? new ApiError('Apply', unforced).conflicts : [];
  }
}

function isOvertaken(live: AnyObject | undefined, { status, body }: ApiResponse): boolean {
  if (!live) return status === 200;
  const { resourceVersion } = (body as AnyObject).metadata;
  return resourceVersion !== undefined && resourceVersion !== live.metadata.resourceVersion;
}

function withoutBlocking(object: AnyObject): AnyObject {
  const { ownerReferences } = object.metadata;
  if (!ownerReferences) return object;
  const loose = ownerReferences.map(({ blockOwnerDeletion, ...owner }): OwnerReference => owner);
  return { ...object, metadata: { ...object.metadata, ownerReferences: loose } };
}
