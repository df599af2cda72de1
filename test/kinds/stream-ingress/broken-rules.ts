/** A spec that breaks one rule of the schema alone; what isn't given is that of a valid one. */
export interface BrokenRule {
  readonly spec: object;
  readonly valid: object;
  /** @default web */
  readonly name?: string;
  readonly path: string;
  /** A part of the message. */
  readonly message: string;
}

export const brokenRules: readonly BrokenRule[] = [
  {
    ...{ spec: {}, valid: {}, name: 'a'.repeat(64), path: 'metadata' },
    message: 'at most 63 characters',
  },
  {
    spec: { protocol: 'UDP', proxyProtocol: { decode: true } },
    valid: { protocol: 'TCP', proxyProtocol: { decode: true } },
    path: 'spec.proxyProtocol',
    message: 'spoken over TCP only',
  },
  ...['80', 'Web', '-a', 'a_b'].map((port) => ({
    spec: { upstream: { service: 'db', port } },
    valid: { upstream: { service: 'db', port: 'a-1' } },
    path: 'spec.upstream.port',
    message: 'a number stands without quotes',
  })),
];

/** An edit that breaks one rule alone; before and after are valid. */
export const brokenChanges = [
  {
    ...{ before: { listen: 9000 }, after: { listen: 9001 }, path: 'spec.listen' },
    message: "listen can't be changed",
  },
  {
    ...{ before: {}, after: { protocol: 'UDP' }, path: 'spec.protocol' },
    message: "protocol can't be changed",
  },
  ...[
    { before: {}, after: { className: 'edge' } },
    { before: { className: 'edge' }, after: {} },
    { before: { className: 'edge' }, after: { className: 'public' } },
  ].map((change) => ({
    ...{ ...change, path: 'spec.className' },
    message: "className can't be changed, added or removed",
  })),
];
