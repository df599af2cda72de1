import { describe, expect, it } from 'vitest';
import { LOG_FORMATS } from '../../src/telemetry/logger.js';
import type { Logger } from '../../src/telemetry/logger.js';
import { redactLine, redactText } from '../../src/telemetry/redact.js';
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

const WAYS: readonly [string, (log: Logger, secret: string) => void][] = [
  ['an error', (log, secret) => void log.error({ err: leakyError(secret) }, 'Failed')],
  ['an error in place of fields', (log, secret) => void log.error(leakyError(secret))],
  ['the message of an error', (log, secret) => void log.error({ error: leakyError(secret).message }, 'x')],
  ['a sentence', (log, secret) => void log.info(`Sent {"token": "${secret}"} to /x?access_token=${secret}`)],
  ['a field', (log, secret) => void log.debug({ token: secret, Password: secret }, 'Signed in')],
  [
    'a field somewhere below',
    (log, secret) =>
      void log.trace({ a: [{ b: { 'client-key-data': secret, secret: { key: secret } } }] }, 'x'),
  ],
  ['a field of a child', (log, secret) => void log.child({ auth: { idToken: secret } }).warn('Signed in')],
  ['headers', (log, secret) => void log.info({ headers: { Authorization: secret, 'set-cookie': [secret] } })],
  [
    'a key',
    (log, secret) =>
      void log.info(
        { pem: `-----BEGIN RSA PRIVATE KEY-----\n${secret}\n-----END RSA PRIVATE KEY-----` },
        'x',
      ),
  ],
];

describe.each(LOG_FORMATS)('a log in the format %s', (format) => {
  it.each(WAYS)('does not have the secret of %s', async (_, write) => {
    const secret = 'hunter2-0123456789';
    const text = await logged({ level: 'trace', format }, (log) => {
      write(log, secret);
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
