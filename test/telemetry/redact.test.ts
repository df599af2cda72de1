import { describe, expect, it } from 'vitest';
import { LOG_FORMATS, LOG_LEVELS, redactLine, redactText } from '../../src/telemetry/logger.js';
import { logged } from './logged.js';

const JWT = 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzeXN0ZW0ifQ.c2lnbmF0dXJl';

/** An error as an HTTP client throws it, with the same secret in every place where it may be. */
function leakyError(secret: string): Error {
  const cause = new Error(`connect https://admin:${secret}@api.test:6443 failed`);
  const error = new Error(`401 for Authorization: Bearer ${secret}`, { cause });
  return Object.assign(error, {
    request: { headers: { authorization: `Bearer ${secret}`, 'x-plain': secret } },
    object: { spec: { envs: [{ name: 'DB', value: secret }] } },
  });
}

/** Fields and message of a line, and fields of the logger that writes it. */
interface Line {
  readonly fields?: unknown;
  readonly message?: string;
  readonly bound?: Readonly<Record<string, unknown>>;
}

const WAYS: readonly [string, (secret: string) => Line][] = [
  ['an error', (secret) => ({ fields: { err: leakyError(secret) } })],
  ['an error in place of fields', (secret) => ({ fields: leakyError(secret) })],
  ['the message of an error', (secret) => ({ fields: { error: leakyError(secret).message } })],
  ['a sentence', (secret) => ({ message: `Sent {"token": "${secret}"} to /x?access_token=${secret}` })],
  ['a field', (secret) => ({ fields: { token: secret, Password: secret } })],
  [
    'a field somewhere below',
    (secret) => ({ fields: { a: [{ b: { 'client-key-data': secret, secret: { key: secret } } }] } }),
  ],
  ['a field of a child', (secret) => ({ bound: { auth: { idToken: secret } } })],
  ['headers', (secret) => ({ fields: { headers: { Authorization: secret, 'set-cookie': [secret] } } })],
  [
    'a key',
    (secret) => ({
      fields: { pem: `-----BEGIN RSA PRIVATE KEY-----\n${secret}\n-----END RSA PRIVATE KEY-----` },
    }),
  ],
];

describe.each(LOG_FORMATS)('a log in the format %s', (format) => {
  it.each(WAYS)('does not have the secret of %s', async (_, line) => {
    const secret = 'hunter2-0123456789';
    const { fields = {}, message = 'Done', bound = {} } = line(secret);
    const text = await logged({ level: 'trace', format }, (log) => {
      const child = log.child(bound);
      for (const level of LOG_LEVELS) child[level](fields, message);
    });
    expect(text).toContain('[redacted]');
    expect(text).not.toContain(secret);
  });

  it('still has what is needed to understand an error', async () => {
    const text = await logged({ level: 'info', format }, (log) => {
      log.error({ err: leakyError('hunter2-0123456789') }, 'Failed');
    });
    for (const part of ['401 for Authorization', 'api.test:6443 failed', 'redact.test.ts'])
      expect(text).toContain(part);
  });
});

describe('redactText', () => {
  it.each([
    ['Get "https://me:pass@api.test/x": EOF', 'Get "https://[redacted]@api.test/x": EOF'],
    [`token ${JWT} has expired`, 'token [redacted] has expired'],
    ['authorization: bearer abcdef123456==', 'authorization: bearer [redacted]'],
  ])('of %j makes %j', (text, clean) => {
    expect(redactText(text)).toBe(clean);
  });

  it.each([
    'Secret shop/web configured',
    'secrets "web" is forbidden: User "a" cannot get resource "secrets"',
    'spec.token: Invalid value: must be short',
    'image: registry.test/a@sha256:0123',
    'the basic form; tokens of a bearer',
    'mail to someone@example.com',
  ])('leaves %j as it is', (text) => {
    expect(redactText(text)).toBe(text);
  });
});

describe('redactLine', () => {
  it('leaves all others as they are, byte by byte', () => {
    const line = '{"level":"info","msg":"Service shop/web created", "n":1.50}\n';
    expect(redactLine(line)).toBe(line);
    const plain = '{"kind":"Secret","namespace":"shop","msg":"Secret shop/web created"}\n';
    expect(redactLine(plain)).toBe(plain);
  });

  it('reads no more of a broken line than its text', () => {
    expect(redactLine('{"token":"hunter2-0123')).toBe('{"token":"[redacted]');
  });
});
