import { describe, expect, it } from 'vitest';
import { OperatorError } from '../../src/contract/error.js';
import { ApiError, askedDelay, classify } from '../../src/engine/api-error.js';
import type { ApiResponse } from '../../src/engine/transport.js';
import { failure, fieldConflict } from './support/builders.js';
import { uidImmutable } from './support/fake-api-server.js';

const WHAT = 'Apply Deployment shop/web';

interface Cause {
  readonly reason: string;
  readonly message: string;
  readonly field: string;
}

const invalid = (field: string, rest: string): Cause => ({
  reason: 'FieldValueInvalid',
  message: `Invalid value: ${rest}`,
  field,
});

const forbidden = (field: string, rest: string): Cause => ({
  reason: 'FieldValueForbidden',
  message: `Forbidden: ${rest}`,
  field,
});

const TERMINATING = {
  causes: [
    {
      reason: 'NamespaceTerminating',
      message: 'namespace shop is being terminated',
      field: 'metadata.namespace',
    },
  ],
};

function classified(response: ApiResponse): OperatorError {
  return classify(new ApiError('Apply Deployment shop/web', response), WHAT);
}

const TABLE: readonly [what: string, response: ApiResponse, reason: string, retry: string][] = [
  [
    'an object that has changed since',
    failure(
      409,
      'Conflict',
      'Operation cannot be fulfilled on deployments.apps "web": the object has been modified',
    ),
    'Conflict',
    'now',
  ],
  [
    'a UID that is not there any more',
    failure(
      409,
      'Conflict',
      'uid mismatch: the provided object specified uid u-1, and no existing object was found',
    ),
    'Conflict',
    'now',
  ],
  ['a field of another manager', fieldConflict(), 'FieldConflict', 'onChange'],
  [
    'an immutable field',
    failure(
      422,
      'Invalid',
      'Deployment.apps "web" is invalid: spec.selector: Invalid value: field is immutable',
      {
        causes: [
          invalid('spec.selector', '{"matchLabels":{"app":"web"}}: field is immutable'),
          forbidden('data', 'field is immutable when `immutable` is set'),
        ],
      },
    ),
    'ImmutableField',
    'onChange',
  ],
  [
    'a field that an earlier version had',
    failure(
      500,
      'InternalError',
      'failed to convert pruned object at version apps/v1beta1: .spec.old: field not declared in schema',
    ),
    'Invalid',
    'onChange',
  ],
  [
    'a body that is not understood',
    failure(400, 'BadRequest', 'error decoding patch'),
    'Invalid',
    'onChange',
  ],
  [
    'a duplicate list key',
    failure(
      500,
      undefined,
      'failed to create typed patch object (shop/web; apps/v1, Kind=Deployment): .spec.template.spec.containers[name="web"].env: duplicate entries for key [name="A"]',
    ),
    'Invalid',
    'onChange',
  ],
  [
    'an API server that is about to stop',
    failure(422, 'Invalid', 'Service "web" is invalid: spec.clusterIPs', {
      causes: [
        invalid(
          'spec.clusterIPs',
          '[""]: failed to allocate IP: Post "https://127.0.0.1:6443/apis/networking.k8s.io/v1/ipaddresses": dial tcp 127.0.0.1:6443: connect: connection refused',
        ),
      ],
    }),
    'ServerOverloaded',
    'backoff',
  ],
  [
    'a node port that another Service still has',
    failure(
      422,
      'Invalid',
      'Service "web" is invalid: spec.ports[0].nodePort: Invalid value: 30002: provided port is already allocated',
      { causes: [invalid('spec.ports[0].nodePort', '30002: provided port is already allocated')] },
    ),
    'NodePortConflict',
    'onChange',
  ],
  [
    'a namespace on its way out',
    failure(
      403,
      'Forbidden',
      'deployments.apps "web" is forbidden: unable to create new content in namespace shop because it is being terminated',
      TERMINATING,
    ),
    'NamespaceTerminating',
    'backoff',
  ],
  [
    'a missing right',
    failure(
      403,
      'Forbidden',
      'deployments.apps "web" is forbidden: User "x" cannot patch resource "deployments"',
    ),
    'Forbidden',
    'backoff',
  ],
  ['a kind that is not served', { status: 404, body: '404 page not found\n' }, 'KindNotServed', 'backoff'],
  [
    'a kind that a group of Kubernetes itself does not serve',
    failure(404, 'NotFound', 'the server could not find the requested resource', {}),
    'KindNotServed',
    'backoff',
  ],
  [
    'a missing namespace',
    failure(404, 'NotFound', 'namespaces "shop" not found', { name: 'shop', kind: 'namespaces' }),
    'NotFound',
    'backoff',
  ],
  [
    'too many requests',
    failure(429, 'TooManyRequests', 'Too many requests, please try again later.', { retryAfterSeconds: 1 }),
    'ServerOverloaded',
    'backoff',
  ],
  ['an unavailable server', { status: 503, body: 'no endpoints available' }, 'ServerOverloaded', 'backoff'],
  ['a time-out', failure(504, 'Timeout', 'Timeout: request did not complete'), 'ServerOverloaded', 'backoff'],
  [
    'an internal error',
    failure(500, 'InternalError', 'etcdserver: leader changed'),
    'ServerOverloaded',
    'backoff',
  ],
  [
    'credentials that are not accepted',
    failure(401, 'Unauthorized', 'Unauthorized'),
    'Unauthorized',
    'backoff',
  ],
  ['a method that is not allowed', failure(405, 'MethodNotAllowed', 'no'), 'Refused', 'onChange'],
  ['a content type that is not known', failure(415, 'UnsupportedMediaType', 'no'), 'Refused', 'onChange'],
  ['a request that took too long', failure(408, 'Timeout', 'no'), 'Refused', 'backoff'],
  ['an answer that nobody foresaw', { status: 302, body: {} }, 'Refused', 'backoff'],
  [
    'a body that is too large',
    failure(413, 'RequestEntityTooLarge', 'limit is 3145728'),
    'Refused',
    'onChange',
  ],
];

/** What users may write, word for word, into a field that is invalid. */
const WORDS = [
  ...['field is immutable', ': field is immutable', '/field is immutable:', 'x": field is immutable'],
  ...['connection refused', 'failed to allocate', 'context deadline exceeded', 'is being terminated'],
  ...['provided port is already allocated', 'Only one reference can have Controller set to true.'],
  ...['field not declared in schema', 'failed to create typed patch object', 'does not support dry run'],
  ...['cannot set blockOwnerDeletion', 'cannot delete resource "jobs"'],
];

describe('what a user has written into a refused field', () => {
  it.each(WORDS)('is not taken for what the API server says: %s', (text) => {
    const causes = [
      invalid('metadata.labels', `${JSON.stringify(text)}: a valid label must be shorter`),
      invalid('spec.template.spec', `{"a":[${JSON.stringify(text)}],"b":1}: is odd`),
      invalid('spec.command', JSON.stringify(text)),
    ];
    const message = `Job.batch "web" is invalid: ${causes.map(({ message }) => message).join(', ')}`;
    const error = classified(failure(422, 'Invalid', message, { causes }));
    expect(error).toMatchObject({ reason: 'Invalid', retry: 'onChange' });
    expect((error.cause as ApiError).showsAnother).toBe(false);
  });
});

describe('ApiError, what cannot be changed', () => {
  it.each([
    invalid('spec.selector', '{"matchLabels":{"app":"a: b"}}: field is immutable'),
    invalid(
      'spec.selector',
      'v1.LabelSelector{MatchLabels:map[string]string{"a":"b: c"}}: field is immutable',
    ),
    invalid('spec.clusterIPs[0]', '["10.0.0.9"]: may not change once set'),
    invalid('roleRef', '{"kind":"Role"}: cannot change roleRef'),
    invalid('type', 'null: field is immutable'),
    forbidden('data', 'field is immutable when `immutable` is set'),
    forbidden(
      'spec',
      "updates to statefulset spec for fields other than 'replicas' and 'minReadySeconds' are forbidden",
    ),
    forbidden(
      'spec',
      'spec is immutable after creation except resources.requests for bound claims\n"a": "b"',
    ),
  ])('is told by what the API server says of the field: $message', (cause) => {
    const error = new ApiError('Apply', failure(422, 'Invalid', 'no', { causes: [cause] }));
    expect(error.immutableField).toBe(true);
  });

  it('is not the address that another has', () => {
    const causes = [
      invalid(
        'spec.clusterIPs',
        '["10.0.0.9"]: failed to allocate IP 10.0.0.9: provided IP is already allocated',
      ),
    ];
    expect(classified(failure(422, 'Invalid', 'no', { causes })).reason).toBe('Invalid');
  });
});

describe('classify', () => {
  it.each(TABLE)('takes %s for what it is', (_, response, reason, retry) => {
    const error = classified(response);
    expect({ reason: error.reason, retry: error.retry }).toEqual({ reason, retry });
    expect(error.message).toMatch(/^Apply Deployment shop\/web: \S/);
  });

  // A wrong UID on an object that exists is 422, not 409; nothing about the intent is invalid.
  it('takes an object that was replaced by a namesake for a stale view', () => {
    expect(classified(uidImmutable('deployments.apps', 'web', 'uid-old'))).toMatchObject({ retry: 'now' });
  });

  it.each([new TypeError('x is not a function'), new Error('a plain one'), 'a text'])(
    'takes %s, which no answer and no way to the server has brought, for a bug of ours',
    (thrown) => {
      const error = classify(thrown, WHAT);
      expect(error).toMatchObject({ reason: 'InternalError', retry: 'backoff', isBug: true, cause: thrown });
    },
  );

  it.each([
    ['a missing right', 'deployments.apps "web" is forbidden: User "x" cannot patch', 60_000],
    // The plugin that checks this hears of a new kind some seconds after it is served.
    [
      'a kind that is new to admission',
      'deployments.apps "web" is forbidden: cannot set blockOwnerDeletion in this case because cannot find RESTMapping',
      0,
    ],
  ])('asks for the pause that is of use after %s', (_, message, pause) => {
    expect(classified(failure(403, 'Forbidden', message)).retryAfterMilliseconds).toBe(pause);
  });

  it.each([
    [
      'the operator lacks a right',
      'services "web" is forbidden: User "system:serviceaccount:ops:reconstruct" cannot patch resource "services" in API group "" in the namespace "shop"',
    ],
    [
      'the operator may not own for the custom resource',
      `services "web" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: no RBAC policy matched`,
    ],
  ])('says how to grant it where %s', (_, message) => {
    expect(classified(failure(403, 'Forbidden', message)).message).toBe(
      `${WHAT}: ${message}; grant it by \`reconstruct install --apply\` with the options in use, which follows what each kind declares: children, related, and what a watch writes`,
    );
  });

  it.each([
    ['a person lacks a right', 'services "web" is forbidden: User "jane" cannot patch resource "services"'],
    ['a quota forbids it', 'pods "web" is forbidden: exceeded quota: none, requested: pods=1'],
  ])('grants nothing where %s', (_, message) => {
    expect(classified(failure(403, 'Forbidden', message)).message).toBe(`${WHAT}: ${message}`);
  });

  it('leaves what is classified already as it is, and keeps the cause of the rest', () => {
    const known = new OperatorError({ reason: 'OwnershipConflict', message: 'x' });
    expect(classify(known, WHAT)).toBe(known);
    expect(classified(failure(403, 'Forbidden', 'no')).cause).toBeInstanceOf(ApiError);
  });
});

describe('ApiError', () => {
  it.each([
    [failure(410, 'Gone', 'gone'), true],
    [failure(500, 'Expired', 'The provided continue parameter is too old'), true],
    [failure(504, 'Timeout', 'Too large resource version'), false],
  ])('tells whether a version is too old to go on from', (response, expired) => {
    expect(new ApiError('Watch pods', response).expired).toBe(expired);
  });

  it('reads when to come back from the header, else from the body', () => {
    const response = failure(429, 'TooManyRequests', 'later', { retryAfterSeconds: 7 });
    expect(askedDelay(new ApiError('List', response))).toBe(7_000);
    expect(askedDelay(new ApiError('List', { ...response, retryAfterSeconds: 3 }))).toBe(3_000);
  });
});

describe('ApiError, duplicate values', () => {
  const invalid = (reason: string, message: string, field?: string): ApiError =>
    new ApiError(
      'Apply',
      failure(422, 'Invalid', 'no', { causes: [{ reason, message, ...(field && { field }) }] }),
    );

  it.each([
    ['"http"', 'http'],
    ['30080', 30_080],
    ['{"port":80}', '{"port":80}'],
  ])('tells where %s is there twice', (printed, value) => {
    expect(
      invalid('FieldValueDuplicate', `Duplicate value: ${printed}`, 'spec.ports[1].name').duplicateValue,
    ).toEqual({ field: 'spec.ports[1].name', value });
  });
});
