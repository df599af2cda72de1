import type { FieldConflict } from '../contract/change.js';
import { messageOf, OperatorError } from '../contract/error.js';
import { MAX_RETRY_AFTER, PAUSES } from './retry.js';
import type { ApiResponse } from './transport.js';

/** @see https://github.com/kubernetes/apimachinery/blob/v0.36.3/pkg/api/errors/errors.go (`NewGenericServerResponse`) */
const UNKNOWN_RESOURCE = 'the server could not find the requested resource';
/** Whole message of a 422 where a JSON patch doesn't fit the object: a `test` has failed, or a path isn't there. */
const PATCH_DOES_NOT_FIT = 'the server rejected our request due to an error in our request';

/** `metav1.Status`, as far as it is read here. */
export interface ApiStatus {
  readonly code?: number;
  readonly reason?: string;
  readonly message?: string;
  readonly metadata?: { readonly continue?: string };
  readonly details?: {
    readonly kind?: string;
    readonly retryAfterSeconds?: number;
    readonly causes?: readonly StatusCause[];
  };
}

interface StatusCause {
  readonly reason?: string;
  readonly message?: string;
  readonly field?: string;
}

/**
 * Words of the API server for a field that can't be changed. A validation rule of a CRD may say it in the first of these words.
 * @see https://github.com/kubernetes/kubernetes/tree/master/pkg/apis (`validation.go` of each group)
 */
const IMMUTABLE =
  /^(?:field is immutable(?: when `immutable` is set)?|may not change once set|cannot change roleRef|may not be changed in an update\.|updates to statefulset spec for fields other than [^:]* are forbidden|updates to \w+ are forbidden\.|pod updates may not (?:add or remove containers|change fields other than .*)|(?:spec|spec\.persistentvolumesource) is immutable after creation\s.*)$/s;

/** Words of the allocators of addresses and ports where it isn't the address that is wrong. */
const UNAVAILABLE =
  /^failed to allocate IP(?: \S+)?: (?!provided |the provided )|^(?!failed to).*(?:connection refused|context canceled|context deadline exceeded)$/s;

/** The plugin of quotas objects; it comes after those that judge the object itself. */
const EXCEEDED = /^exceeded quota: [^,]+, requested: (\S+), used: \S+, limited: \S+$/;
/** Resources of quotas that have whole numbers: objects, and ports and balancers of Services. */
const COUNTED = /^(?:count\/\S+|[a-z]+s|services\.(?:nodeports|loadbalancers))$/;

/** Beginning of the message of a 403, before the objection; names are quoted, and hold no text of a user's choice. */
const FORBIDDEN = /^\S+(?: "[^"]*")? is forbidden: /;
/** Beginning of the message where a webhook, or a policy of the cluster, has objected to what was sent. */
const DENIED =
  /^(?:\S+(?: "[^"]*")? is forbidden: )?(?:admission webhook|\w*[Pp]olicy) (?:"[^"]*"|'[^']*' with binding '[^']*') denied (?:the )?request/;

/**
 * Texts of a 500 by which the API server refuses the object for good, and what helps. Each is the beginning of a whole message.
 * A conversion webhook that fails may answer later.
 * @see https://github.com/kubernetes/kubernetes/issues/113482
 */
export const REFUSED_AS_FAILURE = {
  typedPatch: { text: /^failed to create typed patch object \(/ },
  conversion: {
    text: /^failed to convert new object \([^)]*\) to proper version: (?!conversion webhook for )/,
  },
  typedLive: {
    text: /^failed to create typed live object \(/,
    remedy: "correct what is stored by its CRD's schema, or delete the object, and it is created again",
  },
  tooLarge: { text: /^etcdserver: request is too large$/, remedy: 'make the object smaller than 1.5 MiB' },
  tooLargeToSend: {
    text: /^rpc error: code = ResourceExhausted desc = trying to send message larger than max \(/,
    remedy: 'make the object smaller than 1.5 MiB',
  },
  resourceVersion: { text: /^strconv\.ParseUint: parsing "/, remedy: 'remove metadata.resourceVersion' },
  nodePorts: {
    text: /^Internal error occurred: failed to allocate a nodePort: range is full$/,
    remedy: 'delete Services or ports that take one, or have the range widened (--service-node-port-range)',
    reason: 'NodePortConflict',
  },
} as const satisfies Readonly<Record<string, RefusalText>>;

interface RefusalText {
  readonly text: RegExp;
  readonly remedy?: string;
  /** @default Invalid */
  readonly reason?: string;
}

const REFUSALS: readonly RefusalText[] = Object.values(REFUSED_AS_FAILURE);

/** Meaning of a refusal, and what helps. */
interface Meaning {
  readonly reason: string;
  readonly retry: OperatorError['retry'];
  readonly remedy?: string | undefined;
}

const BRAND = Symbol.for('reconstruct.ApiError');

/** An answer of the API server that isn't what was asked for. */
export class ApiError extends Error {
  readonly [BRAND] = true;

  /** Reports whether a value is one, also of another copy of this package: kinds of authors may bring handlers of their own. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === 'object' && value !== null && BRAND in value;
  }

  readonly code: number;
  readonly status: ApiStatus;
  /** Message of the answer, without values of Secrets. */
  readonly said: string | undefined;
  /** Milliseconds that the API server has asked to wait, at most a minute; 0 if it hasn't. */
  readonly pauseMilliseconds: number;
  /** Whether it is that of an earlier attempt; see `ApiResponse`. */
  readonly isRepeated: boolean;
  /** Whether a first attempt may have been carried out; see `ApiResponse`. */
  readonly isSecondTry: boolean;

  /** @param ofSecrets values of Secrets were sent, which the answer may repeat */
  constructor(what: string, response: ApiResponse, ofSecrets = false) {
    const status = statusOf(response.body);
    const message = ofSecrets ? withoutValues(status, response.status) : status.message;
    const said = message ?? status.reason ?? '';
    const code = String(response.status);
    // A text begins with the code as it is.
    super(`${what}: ${said.startsWith(code) ? said : `${code} ${said}`}`.trimEnd());
    this.name = 'ApiError';
    this.code = response.status;
    this.said = message;
    Object.defineProperty(this, 'status', { enumerable: false });
    this.isSecondTry = response.isSecondTry ?? false;
    this.status = status;
    this.isRepeated = response.isRepeated ?? false;
    this.pauseMilliseconds = pauseAskedBy(response);
  }

  /** Whether the resource version is too old to watch or page from. */
  get expired(): boolean {
    return this.code === 410 || this.status.reason === 'Expired' || this.status.reason === 'Gone';
  }

  /**
   * Whether the kind itself isn't served: a path that no API knows is answered in plain text, and one below a group of
   * Kubernetes itself with a message that names no object.
   */
  get kindNotServed(): boolean {
    const { code, reason } = this.own;
    return code === 404 && (reason === undefined || this.status.message === UNKNOWN_RESOURCE);
  }

  /** Whether the API server knows the kind, and has no object of the name. */
  get objectIsGone(): boolean {
    return this.own.code === 404 && !this.kindNotServed;
  }

  /** Whether it is there already, or is another one, of another version, or of other content than was named. */
  get conflict(): boolean {
    const { code, reason = 'Conflict' } = this.own;
    if (code === 422) return this.status.message === PATCH_DOES_NOT_FIT;
    return code === 409 && (reason === 'Conflict' || this.alreadyExists);
  }

  /** Whether a webhook or a policy objects, with whatever code and reason it likes. */
  get denied(): boolean {
    return DENIED.test(this.status.message ?? '');
  }

  /**
   * Whether the API server fills its cache of the type, as after a CRD was installed or the server was started. What keeps it from
   * that would be in the message.
   * @see https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/storage/cacher/ready.go
   */
  get storageInitializing(): boolean {
    return this.code === 429 && this.status.message === 'storage is (re)initializing';
  }

  /** Whether an object that was taken for new is there already: a field can't be changed, or there would be a second controller. */
  get showsAnother(): boolean {
    const isSecondController = (cause: StatusCause): boolean =>
      cause.field === 'metadata.ownerReferences' &&
      objectionOf(cause).startsWith('Only one reference can have Controller set to true.');
    return this.refused && this.causes.some((cause) => isImmutability(cause) || isSecondController(cause));
  }

  /** Objection of a 403, without the words before it; empty where there is none. */
  get objection(): string {
    const { message = '' } = this.status;
    return this.code === 403 && FORBIDDEN.test(message) ? message.replace(FORBIDDEN, '') : '';
  }

  /** Whether there is one of that name, which is the last thing that is checked of a new object. */
  get alreadyExists(): boolean {
    return this.own.code === 409 && this.own.reason === 'AlreadyExists';
  }

  /** Whether the right itself is missing, and it isn't this one request that is objected to. */
  get lacksRight(): boolean {
    return /^User "(?:[^"\\]|\\.)*" cannot \w+ resource "/.test(this.objection);
  }

  /**
   * Whether the plugin that checks owner references hasn't heard of a kind yet, some seconds after it is served: that passes by
   * itself.
   */
  get newToAdmission(): boolean {
    return this.objection.startsWith(
      'cannot set blockOwnerDeletion in this case because cannot find RESTMapping',
    );
  }

  /** Two items of a list have the same value in a field where that isn't allowed, as in `spec.ports[1].name`. */
  get duplicateValue(): { readonly field: string; readonly value: unknown } | undefined {
    if (!this.refused) return undefined;
    for (const { reason, field, message = '' } of this.causes) {
      const value = /^Duplicate value: (.*)$/.exec(message)?.[1];
      if (reason === 'FieldValueDuplicate' && field !== undefined && value !== undefined)
        return { field, value: /^(".*"|\d+)$/.test(value) ? JSON.parse(value) : value };
    }
    return undefined;
  }

  /** Paths, as in `fieldsV1`, of the fields by which alone the object is refused; none if one is in a list, or can't be changed. */
  get refusedFields(): string[][] {
    const isObjection = (cause: StatusCause): boolean =>
      /^FieldValue(?:Forbidden|Invalid)$/.test(cause.reason ?? '') &&
      !isImmutability(cause) &&
      !cause.field?.includes('[');
    if (this.code !== 422 || this.wrongUid || !this.causes.every(isObjection)) return [];
    return this.causes.map(({ field = '' }) => field.split('.').map((name) => `f:${name}`));
  }

  /** Paths at which null was met in place of a map, but for those in lists. */
  get nullMaps(): string[][] {
    const isNull = ({ field = '', message = '' }: StatusCause): boolean =>
      /^Invalid value: "null": .* must be of type object: "null"$/.test(message) && !field.includes('[');
    return this.code === 422 ? this.causes.filter(isNull).map(({ field = '' }) => field.split('.')) : [];
  }

  /** Whether a field isn't in the schema of a version in which something was applied, now or earlier. */
  get fieldNotInSchema(): boolean {
    return (
      this.code === 500 &&
      /^(?:failed to prune fields: )?(?:failed add back (?:owned|dangling) items: )?failed to convert pruned object .*: field not declared in schema$/s.test(
        this.status.message ?? '',
      )
    );
  }

  /** Whether the UID that was sent isn't that of the object: it was replaced by a namesake. */
  get wrongUid(): boolean {
    return this.refused && this.causes.some(({ field }) => field === 'metadata.uid');
  }

  /** Whether a webhook is asked that takes no dry runs. */
  get dryRunUnsupported(): boolean {
    return (
      this.code === 400 &&
      /^admission webhook "[^"]*" does not support dry run$/.test(this.status.message ?? '')
    );
  }

  /** Owners of fields that were applied without force. */
  get conflicts(): FieldConflict[] {
    return (this.conflict ? this.causes : []).flatMap(({ reason, message = '', field }) => {
      if (reason !== 'FieldManagerConflict' || field === undefined) return [];
      const quoted = /^conflict with ("(?:[^"\\]|\\.)*")/.exec(message)?.[1];
      return [{ field, manager: quoted === undefined ? '' : (JSON.parse(quoted) as string) }];
    });
  }

  /** Whether another field manager owns what was applied without force. */
  get fieldConflict(): boolean {
    return this.conflict && this.causes.some(({ reason }) => reason === 'FieldManagerConflict');
  }

  /** Whether the content of the object is refused, and would be again. */
  get refused(): boolean {
    const isInvalid = this.code === 422 && !this.conflict;
    return isInvalid || this.fieldNotInSchema || this.refusedAsFailure !== undefined;
  }

  /** Entry of `REFUSED_AS_FAILURE`. */
  get refusedAsFailure(): RefusalText | undefined {
    const { message = '' } = this.status;
    return this.code === 500 ? REFUSALS.find(({ text }) => text.test(message)) : undefined;
  }

  /** Meaning for the custom resource. */
  get meaning(): Meaning {
    const { code, objection, refused } = this;
    const some = (is: (cause: StatusCause) => boolean): boolean => refused && this.causes.some(is);
    const onChange = (reason: string, remedy?: string): Meaning => ({ reason, retry: 'onChange', remedy });
    const backoff = (reason: string, remedy?: string): Meaning => ({ reason, retry: 'backoff', remedy });
    // One that fails itself, or is busy, may answer another time.
    if (this.denied && code < 500 && code !== 429) return onChange('Refused');
    if (this.fieldConflict) return onChange('FieldConflict');
    if (this.conflict || this.wrongUid) return { reason: 'Conflict', retry: 'now' };
    if (some(isImmutability) && this.causes.every(isImmutability))
      return onChange('ImmutableField', 'delete the object, and it is created again');
    if (some((cause) => objectionOf(cause) === 'provided port is already allocated'))
      return onChange('NodePortConflict');
    // No address can be reserved, as when the API server is about to stop; none is taken.
    if (some((cause) => UNAVAILABLE.test(objectionOf(cause)))) return backoff('ServerOverloaded');
    if (code === 400 || refused)
      return onChange(this.refusedAsFailure?.reason ?? 'Invalid', this.refusedAsFailure?.remedy);
    if (code === 401) return backoff('Unauthorized');
    if (code === 403) {
      if (this.causes.some(({ reason }) => reason === 'NamespaceTerminating'))
        return backoff('NamespaceTerminating');
      if (objection.startsWith('exceeded quota: '))
        return backoff('QuotaExceeded', 'ask for less, or have the quota raised');
      return backoff('Forbidden', OPERATOR_LACKS_RIGHT.test(objection) ? GRANT : undefined);
    }
    if (code === 404) return backoff(this.kindNotServed ? 'KindNotServed' : 'NotFound');
    if (code === 429 || code >= 500) return backoff('ServerOverloaded');
    return REFUSED.has(code) ? onChange('Refused') : backoff('Refused');
  }

  private get causes(): readonly StatusCause[] {
    return this.own.details?.causes ?? [];
  }

  /** Status by the API server itself; empty where a webhook or a policy has made it up. */
  private get own(): ApiStatus {
    return this.denied ? {} : { ...this.status, code: this.code };
  }
}

function isImmutability(cause: StatusCause): boolean {
  const { reason } = cause;
  return (
    (reason === 'FieldValueInvalid' || reason === 'FieldValueForbidden') && IMMUTABLE.test(objectionOf(cause))
  );
}

/**
 * Returns the objection to a field, without the value: that is a user's, and may read like anything.
 * @see https://github.com/kubernetes/apimachinery/blob/v0.36.3/pkg/util/validation/field/errors.go (`ErrorBody`)
 */
function objectionOf({ reason, message = '' }: StatusCause): string {
  const [, ...parts] = message.replace(/"(?:[^"\\]|\\.)*(?:"|$)/gs, '""').split(': ');
  return parts.slice(reason === 'FieldValueForbidden' ? 0 : 1).join(': ');
}

const UUID = /\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g;
/** Whole answers without values, and with UIDs replaced: about names, rights, quotas, versions, field managers and load. */
const SHOWN_WHOLE = [
  /^\S+(?: "[^"]*")? is forbidden: (?:exceeded quota: [a-z\d.-]+(?:, (?:requested|used|limited): (?:,?(?:count\/)?secrets=\d+[kMGTPEi]*)+){3}|unable to create new content in namespace \S+ because it is being terminated)$/,
  /^\S+ "[^"]*" (?:already exists|not found)$|^Request entity too large: limit is \d+$/,
  /^Apply failed with \d+ conflicts?:(?:[ \n]conflicts? with "(?:[^"\\]|\\.)*"(?: with subresource "\w+")?(?: using [\w./]+)?(?: at [\dTZ:-]+)?:(?:(?: |\n- )\.(?:[^\s:]|a UID)+)+)+$/,
  /^(?:Operation cannot be fulfilled on \S+ "[^"]*": )?(?:the object has been modified; please apply your changes to the latest version and try again|Precondition failed: UID in precondition: a UID, UID in object meta: (?:a UID)?|uid mismatch: the provided object specified uid a UID, and no existing object was found)$/,
  /^(?:404 page not found|Unauthorized|the server rejected our request due to an error in our request|(?:Too many requests|The apiserver is shutting down), please try again later\.)$/,
  /^(?:(?:Timeout: )?request did not complete within (?:requested|the allotted) timeout(?: - context [a-z ]+)?|etcdserver: [\w:, ]+)$/,
];
/** Beginnings that fields with objections may follow. */
const BEFORE_FIELDS = /^(?:failed to [\w ]+ \([^)]*\)|\S+ "[^"]*" is invalid)/;
/** Beginnings after which the text is free, beside `DENIED`. */
const BEFORE_VALUES =
  /^(?:\S+(?: "[^"]*")? is forbidden: (?:User "(?:[^"\\]|\\.)*" cannot \w+ resource "[^"]*" in API group "[^"]*"(?: in the namespace "[^"]*"| at the cluster scope)?|cannot set blockOwnerDeletion (?:in this case because cannot find RESTMapping for APIVersion [\w./-]+ Kind \w+|if an ownerReference refers to a resource you can't set finalizers on))|\S+ (?:"[^"]*" is forbidden|in version "[^"]*" cannot be handled as a \w+)|Operation cannot be fulfilled on \S+ "[^"]*"|Internal error occurred(?:: failed calling webhook "[^"]*")?)/;
/** Objections to fields, one right after the other until there is a value, which may read like the next. */
const PROBLEM =
  /(?:: (?:errors:\n {2})?|\n {2})(\.[^\s:]+): (expected [\w ]+(?=, got)|field not declared in schema|duplicate entries\b)/gy;
/** Objections, of those that are `IMMUTABLE`, that a Secret meets. */
const IMMUTABLE_SECRET = /^field is immutable(?: when `immutable` is set)?$/;
/** Type of an objection, before the value. @see `objectionOf` */
const TYPE = /^(?:Duplicate|Invalid|Required|Unsupported) value|^(?:Forbidden|Not found|Too long|Too many)/;

/**
 * Returns the message of an answer about Secrets: names, paths and expected types; no values, and no UIDs, which key their checksums.
 * Of a text that isn't known there is the status code alone.
 */
function withoutValues({ message: text = '', details }: ApiStatus, code: number): string {
  const message = text.replace(UUID, 'a UID');
  if (SHOWN_WHOLE.some((pattern) => pattern.test(message))) return message;
  const causes = (details?.causes ?? []).flatMap((cause) => {
    const { field, reason = '', message: objection = '' } = cause;
    const said = (IMMUTABLE_SECRET.exec(objectionOf(cause)) ?? TYPE.exec(objection))?.[0];
    return field !== undefined && reason.startsWith('FieldValue') ? [[field, said].join(': ')] : [];
  });
  const fields = BEFORE_FIELDS.exec(message)?.[0];
  const problems = [...message.slice(fields?.length).matchAll(PROBLEM)].map(
    ([, path, problem]) => `${path}: ${problem}`,
  );
  const known = fields === undefined ? '' : [...causes, ...problems].join(', ');
  const start = fields ?? (DENIED.exec(message) ?? BEFORE_VALUES.exec(message))?.[0] ?? String(code);
  const shown = `${start}${known && `: ${known}`}`.replace(UUID, 'a UID');
  return shown === message
    ? shown
    : `${shown} (the rest isn't shown, since it may hold values of the Secret)`;
}

function statusOf(body: unknown): ApiStatus {
  if (typeof body === 'string') return { message: body.slice(0, 1024).trim() };
  return typeof body === 'object' && body !== null ? body : {};
}

/** Returns how long a refusal asks to wait, in milliseconds, at most a minute; 0 if it doesn't. */
export function pauseAskedBy({ retryAfterSeconds, body }: ApiResponse): number {
  const seconds = retryAfterSeconds ?? statusOf(body).details?.retryAfterSeconds ?? 0;
  return Math.min(seconds * 1000, MAX_RETRY_AFTER);
}

/** Returns how long the API server has asked to wait, in milliseconds; 0 if it hasn't. */
export function askedDelay(error: unknown): number {
  return error instanceof ApiError ? error.pauseMilliseconds : 0;
}

/** Reports whether the server, or what answers for it, has too much to do for this request now. */
export function isThrottled(error: unknown): boolean {
  return error instanceof ApiError && [429, 503, 504].includes(error.code);
}

/** Codes for a fault of the request itself, so that only another one is of use; 409 where it is no conflict. */
const REFUSED: ReadonlySet<number> = new Set([405, 406, 409, 413, 414, 415, 431]);

/**
 * Classifies what the transport has thrown, unless that is classified already: there was no answer.
 * @returns the error itself where a program is at fault, and not the way to the API server
 */
export function unanswered(error: unknown, what: string): unknown {
  if (error instanceof OperatorError || isMistake(error)) return error;
  const message = `${what}: the API server gave no answer (${messageOf(error)})`;
  return new OperatorError({ reason: 'Unreachable', message, retry: 'backoff', cause: error });
}

/** Reports whether a program is at fault; a TypeError with a cause is how `fetch` reports a connection that failed. */
function isMistake(error: unknown): boolean {
  if (error instanceof TypeError) return error.cause === undefined;
  if (error instanceof RangeError || error instanceof ReferenceError || error instanceof SyntaxError)
    return true;
  return error instanceof Error && 'code' in error && error.code === 'UND_ERR_INVALID_ARG';
}

/**
 * Returns what a failed request means for its custom resource, and when it is worth another try. Anything that
 * the API server hasn't answered and the transport hasn't reported is a bug.
 */
export function classify(
  error: unknown,
  what: string,
  remedies: Readonly<Record<string, string>> = {},
): OperatorError {
  if (error instanceof OperatorError) return error;
  if (!(error instanceof ApiError)) {
    const message = `${what}: failed by a bug in reconstruct (${String(error)})`;
    return new OperatorError({
      ...{ reason: 'InternalError', message, retry: 'backoff', isBug: true, cause: error },
    });
  }
  const { reason, retry, remedy: usual } = error.meaning;
  const remedy = remedies[reason] ?? usual;
  // These pass by themselves, a quota for example once what was deleted a moment ago is no longer counted.
  const passes = error.newToAdmission || exceedsObjectQuota(error.objection);
  const said = error.said ?? `the API server answered ${String(error.code)}`;
  return new OperatorError({
    ...{ reason, retry, cause: error },
    retryAfterMilliseconds: passes ? 0 : (PAUSES[reason]?.least ?? 0),
    message: `${what}: ${said}${remedy === undefined ? '' : `; ${remedy}`}`,
  });
}

/** Reports whether a quota of objects is used up, by what may have been deleted a moment ago. */
function exceedsObjectQuota(objection: string): boolean {
  const [, asked = ''] = EXCEEDED.exec(objection) ?? [];
  return asked !== '' && asked.split(',').every((amount) => COUNTED.test(amount.replace(/=.*/, '')));
}

/** A person has other ways to get a right. Of what admission forbids, no right is of use. */
const OPERATOR_LACKS_RIGHT =
  /^User "system:serviceaccount:[^"]*" cannot \w+ resource |^cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on/;

/** Remedy where the operator lacks a right. */
export const GRANT =
  'grant it by `reconstruct install --apply` with the options in use, which follows what each kind declares: children, related, and what a watch writes';

/** Returns the bound of the pause after failures of these reasons, in milliseconds, jitter included. */
export function mostPause(reasons: readonly string[]): number {
  return Math.min(...reasons.map((reason) => PAUSES[reason]?.most ?? Infinity));
}
