import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { ApiError, askedDelay, classify, mostPause } from '../../src/client/api-error.js';
import type { REFUSED_AS_FAILURE } from '../../src/client/api-error.js';
import type { OperatorError } from '../../src/contract/error.js';
import type { ApiResponse } from '../../src/client/transport.js';
import { failure, fieldConflict } from './support/builders.js';
import { uidImmutable } from './support/fake-api-server.js';

const WHAT = 'Apply Deployment shop/web';

interface Cause {
  readonly reason: string;
  readonly message: string;
  readonly field: string;
}

const cause =
  (reason: string, prefix: string) =>
  (field: string, rest: string): Cause => ({ reason, message: `${prefix}: ${rest}`, field });
const invalid = cause('FieldValueInvalid', 'Invalid value');
const forbidden = cause('FieldValueForbidden', 'Forbidden');
const refused = (...causes: Cause[]): ApiResponse => failure(422, 'Invalid', 'is invalid', { causes });
const classified = (response: ApiResponse): OperatorError => classify(new ApiError(WHAT, response), WHAT);

const IMMUTABLE = [
  invalid('spec.selector', '{"matchLabels":{"app":"a: b"}}: field is immutable'),
  invalid('spec.selector', 'v1.LabelSelector{MatchLabels:map[string]string{"a":"b: c"}}: field is immutable'),
  invalid('spec.clusterIPs[0]', '["10.0.0.9"]: may not change once set'),
  invalid('roleRef', '{"kind":"Role"}: cannot change roleRef'),
  forbidden('data', 'field is immutable when `immutable` is set'),
  forbidden('spec', "updates to statefulset spec for fields other than 'replicas' are forbidden"),
  forbidden('spec', 'spec is immutable after creation except resources.requests\n"a": "b"'),
  // test/full/refused-as-failure.test.ts provokes these, in the words of the version that it runs.
  forbidden(
    'spec.persistentvolumesource',
    'spec.persistentvolumesource is immutable after creation\n"a": "b"',
  ),
  forbidden(
    'spec',
    'pod updates may not change fields other than `spec.tolerations`\n core.PodSpec{Volumes: nil}',
  ),
  forbidden('spec.containers', 'pod updates may not add or remove containers'),
  forbidden('value', 'may not be changed in an update.'),
  forbidden('parameters', 'updates to parameters are forbidden.'),
];

const TERMINATING = [{ reason: 'NamespaceTerminating', message: 'namespace shop is being terminated' }];
const OLD_FIELD =
  'failed to convert pruned object at version apps/v1beta1: .spec.old: field not declared in schema';
/** One of each kind; test/full/refused-as-failure.test.ts provokes them. */
const REFUSED_500: Readonly<Record<keyof typeof REFUSED_AS_FAILURE, string>> = {
  typedPatch:
    'failed to create typed patch object (shop/web; apps/v1, Kind=Deployment): .spec.env: duplicate entries',
  conversion:
    'failed to convert new object (shop/web; /v1, Kind=Secret) to proper version: unable to convert unstructured object to /v1, Kind=Secret: error decoding from json: illegal base64 data at input byte 3',
  typedLive:
    'failed to create typed live object (shop/web; example.com/v1, Kind=Widget): .spec.n: expected map, got &{a}',
  tooLarge: 'etcdserver: request is too large',
  tooLargeToSend:
    'rpc error: code = ResourceExhausted desc = trying to send message larger than max (2383394 vs. 2097152)',
  resourceVersion: 'strconv.ParseUint: parsing "abc": invalid syntax',
  nodePorts: 'Internal error occurred: failed to allocate a nodePort: range is full',
};
const PATCH_DOES_NOT_FIT = 'the server rejected our request due to an error in our request';
const DENIED = 'admission webhook "policy.example.com" denied the request: no';
const BY_POLICY = `deployments.apps "web" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`;
const MUTATED = `policy 'p' with binding 'b' denied request: expression 'x' resulted in error: no such key: y`;
const EXCEEDED =
  'deployments.apps "web" is forbidden: exceeded quota: q, requested: limits.cpu=1, used: limits.cpu=2, limited: limits.cpu=2';
const UNCONVERTED =
  'conversion webhook for example.com/v2, Kind=Widget failed: Post "https://10.0.0.1/": dial tcp: connect: connection refused';
const STOPPING =
  '[""]: failed to allocate IP: Post "https://127.0.0.1:6443/": dial tcp: connect: connection refused';
/** Causes by which an answer of the API server itself is told from others. */
const OBJECTIONS = [
  ...IMMUTABLE,
  invalid('metadata.uid', '"uid-old": field is immutable'),
  invalid('spec.clusterIPs', STOPPING),
  invalid('spec.ports[0].nodePort', '30002: provided port is already allocated'),
  forbidden('spec.strategy.rollingUpdate', 'may not be specified'),
  { reason: 'FieldValueDuplicate', message: 'Duplicate value: "http"', field: 'spec.ports[1].name' },
];

/** Answers of a real API server, what they are taken for, and when they are retried. */
const TABLE: readonly (readonly [response: ApiResponse, reason: string, retry: string])[] = [
  [failure(409, 'Conflict', 'the object has been modified'), 'Conflict', 'now'],
  [failure(409, 'Conflict', 'uid mismatch: no existing object was found'), 'Conflict', 'now'],
  // A wrong UID on an object that exists is 422, not 409; nothing about the intent is invalid.
  [uidImmutable('deployments.apps', 'web', 'uid-old'), 'Conflict', 'now'],
  // A JSON patch whose test failed, or that names what isn't there; test/full/refused-as-failure.test.ts provokes it.
  [failure(422, 'Invalid', PATCH_DOES_NOT_FIT), 'Conflict', 'now'],
  [fieldConflict(), 'FieldConflict', 'onChange'],
  ...IMMUTABLE.map((one) => [refused(one), 'ImmutableField', 'onChange'] as const),
  [failure(500, 'InternalError', OLD_FIELD), 'Invalid', 'onChange'],
  ...Object.entries(REFUSED_500).map(([entry, text]) => {
    const reason = entry === 'nodePorts' ? 'NodePortConflict' : 'Invalid';
    return [failure(500, undefined, text), reason, 'onChange'] as const;
  }),
  // test/full/refused-as-failure.test.ts provokes these, too.
  [failure(409, undefined, DENIED), 'Refused', 'onChange'],
  [failure(409, 'Conflict', DENIED), 'Refused', 'onChange'],
  [failure(409, 'Locked', 'ask the owner'), 'Refused', 'onChange'],
  [failure(404, 'NotFound', DENIED), 'Refused', 'onChange'],
  [failure(401, undefined, DENIED), 'Refused', 'onChange'],
  ...OBJECTIONS.map(
    (one) => [failure(422, 'Invalid', DENIED, { causes: [one] }), 'Refused', 'onChange'] as const,
  ),
  [failure(403, 'Forbidden', DENIED, { causes: TERMINATING }), 'Refused', 'onChange'],
  [failure(400, 'BadRequest', DENIED), 'Refused', 'onChange'],
  ...['Forbidden', 'Invalid', 'RequestEntityTooLarge'].map((reason, index) => {
    const code = [403, 422, 413][index]!;
    return [
      failure(code, reason, BY_POLICY, { causes: [{ message: 'no' }] }),
      'Refused',
      'onChange',
    ] as const;
  }),
  [failure(403, 'Forbidden', MUTATED), 'Refused', 'onChange'],
  [failure(500, undefined, DENIED), 'ServerOverloaded', 'backoff'],
  [failure(429, 'TooManyRequests', DENIED), 'ServerOverloaded', 'backoff'],
  [failure(403, 'Forbidden', EXCEEDED), 'QuotaExceeded', 'backoff'],
  [failure(500, undefined, UNCONVERTED), 'ServerOverloaded', 'backoff'],
  [
    failure(
      500,
      undefined,
      `failed to convert new object (a/b; c/v1, Kind=C) to proper version: ${UNCONVERTED}`,
    ),
    'ServerOverloaded',
    'backoff',
  ],
  [failure(400, 'BadRequest', 'error decoding patch'), 'Invalid', 'onChange'],
  [
    refused(
      invalid(
        'spec.clusterIPs',
        '["10.0.0.9"]: failed to allocate IP 10.0.0.9: provided IP is already allocated',
      ),
    ),
    'Invalid',
    'onChange',
  ],
  [refused(invalid('spec.clusterIPs', STOPPING)), 'ServerOverloaded', 'backoff'],
  [
    refused(invalid('spec.ports[0].nodePort', '30002: provided port is already allocated')),
    'NodePortConflict',
    'onChange',
  ],
  [
    failure(403, 'Forbidden', 'unable to create new content', { causes: TERMINATING }),
    'NamespaceTerminating',
    'backoff',
  ],
  [failure(403, 'Forbidden', 'User "x" cannot patch resource "deployments"'), 'Forbidden', 'backoff'],
  [{ status: 404, body: '404 page not found\n' }, 'KindNotServed', 'backoff'],
  [
    failure(404, 'NotFound', 'the server could not find the requested resource', {}),
    'KindNotServed',
    'backoff',
  ],
  [failure(404, 'NotFound', 'not found', { name: 'shop', kind: 'namespaces' }), 'NotFound', 'backoff'],
  [failure(429, 'TooManyRequests', 'later', { retryAfterSeconds: 1 }), 'ServerOverloaded', 'backoff'],
  [{ status: 503, body: 'no endpoints available' }, 'ServerOverloaded', 'backoff'],
  [failure(504, 'Timeout', 'request did not complete'), 'ServerOverloaded', 'backoff'],
  [failure(500, 'InternalError', 'etcdserver: leader changed'), 'ServerOverloaded', 'backoff'],
  [failure(401, 'Unauthorized', 'Unauthorized'), 'Unauthorized', 'backoff'],
  [failure(405, 'MethodNotAllowed', 'no'), 'Refused', 'onChange'],
  [failure(415, 'UnsupportedMediaType', 'no'), 'Refused', 'onChange'],
  [failure(413, 'RequestEntityTooLarge', 'limit is 3145728'), 'Refused', 'onChange'],
  [failure(408, 'Timeout', 'no'), 'Refused', 'backoff'],
  [{ status: 302, body: {} }, 'Refused', 'backoff'],
];

/** Texts of the API server that users may write into a field that is invalid. */
const WORDS = [
  ...['field is immutable', ': field is immutable', '/field is immutable:', 'x": field is immutable'],
  ...['connection refused', 'failed to allocate', 'context deadline exceeded', 'is being terminated'],
  ...['provided port is already allocated', 'Only one reference can have Controller set to true.'],
  ...['field not declared in schema', 'failed to create typed patch object', 'does not support dry run'],
  ...['cannot set blockOwnerDeletion', 'cannot delete resource "jobs"'],
];

describe('classify', () => {
  it.each(TABLE)('of %j is %s, retried %s', (response, reason, retry) => {
    const error = classified(response);
    expect({ reason: error.reason, retry: error.retry }).toEqual({ reason, retry });
    expect(error.message).toMatch(/^Apply Deployment shop\/web: \S/);
  });

  it.each(WORDS)("doesn't take a user's text for the API server's: %s", (text) => {
    const causes = [
      invalid('metadata.labels', `${JSON.stringify(text)}: a valid label must be shorter`),
      invalid('spec.template.spec', `{"a":[${JSON.stringify(text)}],"b":1}: is odd`),
      invalid('spec.command', JSON.stringify(text)),
    ];
    const message = `Job.batch "web" is invalid: ${causes.map((one) => one.message).join(', ')}`;
    const error = classified(failure(422, 'Invalid', message, { causes }));
    expect(error).toMatchObject({ reason: 'Invalid', retry: 'onChange' });
    expect((error.cause as ApiError).showsAnother).toBe(false);
  });

  it.each(OBJECTIONS)("doesn't take a webhook's causes for the API server's: %j", (one) => {
    const denied = new ApiError(WHAT, failure(422, 'Invalid', DENIED, { causes: [one] }));
    const { showsAnother, meaning, duplicateValue, refusedFields } = denied;
    expect([showsAnother, meaning.reason, duplicateValue, refusedFields]).toEqual([
      false,
      'Refused',
      undefined,
      [],
    ]);
  });

  const SECRET = '(shop/web; /v1, Kind=Secret)';
  const HOOK = 'admission webhook "no.example.com" denied the request';
  const POLICY = `secrets "web" is forbidden: ValidatingAdmissionPolicy 'no' with binding 'no' denied request`;
  const TYPED = `failed to create typed patch object ${SECRET}`;
  const REST = " (the rest isn't shown, since it may hold values of the Secret)";
  const UID = '0b1e7c3e-1c5b-4a6f-9d0e-2f3a4b5c6d7e';
  const key = invalid('data[a b]', '"hunter2": a valid config key must consist of');
  it.each<[response: ApiResponse, reason: string, said: string]>([
    [
      failure(
        500,
        undefined,
        `${TYPED}: .data.password: expected string, got &value.valueUnstructured{Value:90210777}`,
      ),
      'Invalid',
      `${TYPED}: .data.password: expected string${REST}`,
    ],
    [
      failure(
        500,
        undefined,
        `${TYPED}: errors:\n  .x: field not declared in schema\n  .data.a: expected string, got \n  .hunter2: duplicate entries`,
      ),
      'Invalid',
      `${TYPED}: .x: field not declared in schema, .data.a: expected string${REST}`,
    ],
    [
      failure(500, undefined, `failed to convert new object ${SECRET}: hunter2`),
      '',
      `failed to convert new object ${SECRET}${REST}`,
    ],
    [
      failure(422, 'Invalid', `Secret "web" is invalid: ${key.field}: ${key.message}`, { causes: [key] }),
      'Invalid',
      `Secret "web" is invalid: data[a b]: Invalid value${REST}`,
    ],
    [
      failure(
        422,
        'Invalid',
        'Secret "web" is invalid: data: Forbidden: field is immutable when `immutable` is set',
        { causes: [IMMUTABLE[4]] },
      ),
      'ImmutableField',
      `Secret "web" is invalid: data: field is immutable when \`immutable\` is set${REST}; delete the object, and it is created again`,
    ],
    [
      failure(422, 'Invalid', 'Secret "web" is invalid', {
        causes: [forbidden('data', 'spec is immutable after creation hunter2')],
      }),
      'ImmutableField',
      `Secret "web" is invalid: data: Forbidden${REST}; delete the object, and it is created again`,
    ],
    [
      failure(400, 'BadRequest', 'Secret in version "v1" cannot be handled as a Secret: json: hunter2'),
      'Invalid',
      `Secret in version "v1" cannot be handled as a Secret${REST}`,
    ],
    [failure(400, 'BadRequest', `${HOOK}: data is hunter2`), 'Refused', `${HOOK}${REST}`],
    [failure(403, 'Forbidden', `${HOOK}: hunter2`), 'Refused', `${HOOK}${REST}`],
    [failure(418, undefined, `${HOOK}: hunter2`), 'Refused', `${HOOK}${REST}`],
    [
      failure(422, 'Invalid', `${POLICY}: hunter2`, { causes: [{ message: 'hunter2' }] }),
      'Refused',
      `${POLICY}${REST}`,
    ],
    [
      failure(500, 'InternalError', 'Internal error occurred: failed calling webhook "x": hunter2'),
      '',
      `Internal error occurred: failed calling webhook "x"${REST}`,
    ],
    [
      failure(
        422,
        'Invalid',
        'Secret "web" is invalid: data[a]: Invalid value: " .hunter2: duplicate entries"',
      ),
      'Invalid',
      `Secret "web" is invalid${REST}`,
    ],
    [failure(500, 'hunter2', 'the password hunter2 is too short'), '', `500${REST}`],
    [failure(500, 'hunter2', 'no room .hunter2: field not declared in schema'), '', `500${REST}`],
    [failure(400, 'BadRequest', undefined as never), 'Invalid', `400${REST}`],
    [
      failure(
        409,
        'Conflict',
        `Precondition failed: UID in precondition: ${UID}, UID in object meta: ${UID}`,
      ),
      'Conflict',
      'Precondition failed: UID in precondition: a UID, UID in object meta: a UID',
    ],
    [
      failure(
        403,
        'Forbidden',
        'secrets "web" is forbidden: exceeded quota: small, requested: secrets=1, used: secrets=9, limited: secrets=9',
      ),
      'QuotaExceeded',
      'secrets "web" is forbidden: exceeded quota: small, requested: secrets=1, used: secrets=9, limited: secrets=9; ask for less, or have the quota raised',
    ],
    [
      failure(504, 'Timeout', 'request did not complete within requested timeout'),
      'ServerOverloaded',
      'request did not complete within requested timeout',
    ],
  ])('says of a refused Secret path and type, and no value: %j', (response, reason, said) => {
    const answer = new ApiError('Apply', response, true);
    const error = classify(answer, WHAT);
    expect(error.message).toBe(`${WHAT}: ${said}`);
    if (reason !== '') expect(error.reason).toBe(reason);
    expect(inspect(error, { depth: 9 })).not.toMatch(/hunter2|90210777|0b1e7c3e/);
  });

  const OF = 'secrets "web" is forbidden:';
  const UNFULFILLED = 'Operation cannot be fulfilled on secrets "web"';
  const MODIFIED = 'please apply your changes to the latest version and try again';
  const NONE_FOUND = 'no existing object was found';
  it.each([
    [403, `${OF} User "a" cannot patch resource "secrets" in API group "" in the namespace "shop"`],
    [
      403,
      'secrets is forbidden: User "a" cannot list resource "secrets" in API group "" at the cluster scope',
    ],
    [403, `${OF} unable to create new content in namespace shop because it is being terminated`],
    [403, `${OF} exceeded quota: a, requested: secrets=1, used: secrets=9, limited: secrets=9`],
    [
      403,
      `${OF} exceeded quota: a.b, requested: count/secrets=1,secrets=1, used: count/secrets=1k,secrets=1k, limited: count/secrets=1k,secrets=1k`,
    ],
    [404, 'secrets "web" not found'],
    [404, '404 page not found'],
    [409, 'secrets "web" already exists'],
    [409, `${UNFULFILLED}: the object has been modified; ${MODIFIED}`],
    [409, `${UNFULFILLED}: uid mismatch: the provided object specified uid a UID, and ${NONE_FOUND}`],
    [409, 'Apply failed with 1 conflict: conflict with "vault" using v1: .data.password'],
    [409, 'Apply failed with 2 conflicts: conflicts with "vault":\n- .data.a\n- .data.b'],
    [
      409,
      'Apply failed with 2 conflicts: conflicts with "a" with subresource "status":\n- .data.a\nconflicts with "b" using v1 at 2026-01-02T03:04:05Z:\n- .metadata.ownerReferences[uid="a UID"].name',
    ],
    [413, 'Request entity too large: limit is 3145728'],
    [429, 'Too many requests, please try again later.'],
    [500, 'etcdserver: request is too large'],
    [504, 'Timeout: request did not complete within requested timeout - context deadline exceeded'],
  ])('shows all of an answer about a Secret that has no values: %d %s', (status, message) => {
    expect(new ApiError('Apply', { status, body: { message } }, true).said).toBe(message);
  });

  const MUTATING = `policy 'map' with binding 'map' denied request`;
  const CAUSES = [
    { reason: 'FieldValueInvalid', field: 'hunter2', message: 'Invalid value' },
    {
      reason: 'FieldValueInvalid',
      field: 'a',
      message: 'Invalid value: 1: spec is immutable after creation hunter2',
    },
  ];
  it.each([
    [403, MUTATING, `: expression 'hunter2' resulted in error: no such key: hunter2`],
    [403, MUTATING, `: JSON Patch: error in remove for path: '/data/hunter2'`],
    [403, `${OF.slice(0, -1)}: ${MUTATING}`, `: hunter2`],
    [422, 'policy "map" denied request', `: hunter2 .hunter2: field not declared in schema`],
    [422, HOOK, ` .hunter2: field not declared in schema`],
    [403, OF.slice(0, -1), ': hunter2'],
    [403, OF.slice(0, -1), ': exceeded quota: hunter2'],
    [
      403,
      OF.slice(0, -1),
      ': exceeded quota: a, requested: secrets=1, used: secrets=9, limited: secrets=9 hunter2',
    ],
    [403, OF.slice(0, -1), ': unable to create new content in namespace hunter2'],
    [403, `${OF} User "a" cannot patch resource "secrets" in API group ""`, ': hunter2'],
    [
      403,
      `${OF} cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on`,
      ': hunter2',
    ],
    [409, UNFULFILLED, ': hunter2'],
    [409, UNFULFILLED, `: the object has been modified; ${MODIFIED}: hunter2`],
    [409, UNFULFILLED, ': Precondition failed: UID in precondition: hunter2, UID in object meta: '],
    [409, UNFULFILLED, `: uid mismatch: the provided object specified uid hunter2, and ${NONE_FOUND}`],
  ])('shows of another answer about a Secret its beginning: %d %s', (status, start, rest) => {
    const body = { message: start + rest, details: { causes: CAUSES } };
    expect(new ApiError('Apply', { status, body }, true).said).toBe(start + REST);
  });

  it.each([
    [502, '<html>hunter2</html>'],
    [503, 'failed calling webhook "no.example.com": hunter2'],
    [409, 'the object has been modified: hunter2'],
    [409, 'Apply failed with 1 conflict: hunter2'],
    [409, 'Apply failed with 1 conflict: conflict with "vault" using v1: .data.password: hunter2'],
    [409, 'Apply failed with 2 conflicts: conflicts with "vault":\n- .data.a\nhunter2'],
    [413, 'Request entity too large: hunter2'],
    [429, 'Too many hunter2'],
  ])('shows of an answer about a Secret that it does not know the code alone: %d %s', (status, message) => {
    const body = { message, reason: 'hunter2', details: { causes: CAUSES } };
    expect(new ApiError('Apply', { status, body }, true).message).toBe(`Apply: ${status}${REST}`);
  });

  it('tries what exceeds a quota again after a minute or two, as nothing announces that it was raised', () => {
    expect(classified(failure(403, 'Forbidden', EXCEEDED)).retryAfterMilliseconds).toBe(60_000);
    expect(mostPause(['QuotaExceeded'])).toBe(120_000);
  });

  it.each([new TypeError('x is not a function'), new Error('a plain one'), 'a text'])(
    'takes %s, which is neither an answer nor a failed connection, for a bug',
    (thrown) => {
      const expected = { reason: 'InternalError', retry: 'backoff', isBug: true, cause: thrown };
      expect(classify(thrown, WHAT)).toMatchObject(expected);
    },
  );

  it.each([
    ['User "system:serviceaccount:ops:reconstruct" cannot patch resource "services" in API group ""', true],
    [
      `cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on`,
      true,
    ],
    ['User "jane" cannot patch resource "services"', false],
  ])('names the command that grants a right where the operator lacks one: %s', (why, isOurs) => {
    const remedy =
      '; grant it by `reconstruct install --apply` with the options in use, which follows what each kind ' +
      'declares: children, related, and what a watch writes';
    const message = `services "web" is forbidden: ${why}`;
    expect(classified(failure(403, 'Forbidden', message)).message).toBe(
      `${WHAT}: ${message}${isOurs ? remedy : ''}`,
    );
  });
});

describe('ApiError', () => {
  it.each([
    [failure(410, 'Gone', 'gone'), true],
    [failure(500, 'Expired', 'The provided continue parameter is too old'), true],
    [failure(504, 'Timeout', 'Too large resource version'), false],
  ])('knows that a resource version is too old: %j', (response, expired) => {
    expect(new ApiError('Watch pods', response).expired).toBe(expired);
  });

  it('takes the pause from the header, else from the body', () => {
    const response = failure(429, 'TooManyRequests', 'later', { retryAfterSeconds: 7 });
    expect(askedDelay(new ApiError('List', response))).toBe(7_000);
    expect(askedDelay(new ApiError('List', { ...response, retryAfterSeconds: 3 }))).toBe(3_000);
  });

  it.each([
    ['"http"', 'http'],
    ['30080', 30_080],
    ['{"port":80}', '{"port":80}'],
  ])('names field and value of a duplicate %s', (printed, value) => {
    const field = 'spec.ports[1].name';
    const response = refused(cause('FieldValueDuplicate', 'Duplicate value')(field, printed));
    expect(new ApiError('Apply', response).duplicateValue).toEqual({ field, value });
  });
});
