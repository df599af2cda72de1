import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  createLogger,
  debugOnSignal,
  LOG_FORMATS,
  LOG_LEVELS,
  redactLine,
  redactText,
} from '../../src/telemetry/logger.js';
import type { LoggerProps, RootLogger } from '../../src/telemetry/logger.js';
import { VirtualClock } from '../engine/support/virtual-clock.js';

/** Returns what a logger has written, once `write` is done with it. */
async function logged(
  props: Omit<LoggerProps, 'destination'>,
  write: (log: RootLogger) => void,
): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'logger-'));
  const destination = openSync(join(folder, 'log'), 'w');
  onTestFinished(() => {
    closeSync(destination);
    rmSync(folder, { recursive: true });
  });
  write(await createLogger({ ...props, destination }));
  return readFileSync(join(folder, 'log'), 'utf8');
}

it('writes one JSON object a line, with the time in RFC 3339 and the level as a word', async () => {
  const text = await logged({ level: 'info', format: 'json' }, (log) => {
    log.child({ kind: 'Widget' }).warn({ name: 'web', err: new TypeError('oops') }, 'reconcile failed');
  });
  expect(JSON.parse(text)).toEqual({
    level: 'warn',
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as unknown,
    ...{ kind: 'Widget', name: 'web', msg: 'reconcile failed' },
    err: { type: 'TypeError', message: 'oops', stack: expect.any(String) as unknown },
  });
});

it('writes for people when asked to', async () => {
  const text = await logged({ level: 'info', format: 'pretty' }, (log) => {
    log.info({ name: 'web' }, 'reconciled');
  });
  expect(text).toMatch(/INFO.*reconciled/);
  expect(() => JSON.parse(text) as unknown).toThrow();
});

describe('SIGUSR2', () => {
  const MINUTE = 60_000;

  /** Returns the messages of a log at `info`, with loggers that exist before the signal and one that is created after it. */
  async function messages(
    act: (tools: { clock: VirtualClock; signal: () => void; say: (message: string) => void }) => void,
  ): Promise<string[]> {
    const clock = new VirtualClock();
    const text = await logged({ level: 'info', format: 'json' }, (log) => {
      const grandchild = log.child({ controller: 'widget' }).child({ name: 'web' });
      debugOnSignal(log, clock);
      const say = (message: string): void => {
        grandchild.debug(`${message}, old`);
        grandchild.child({}).debug(`${message}, new`);
      };
      try {
        act({ clock, signal: () => void process.emit('SIGUSR2'), say });
      } finally {
        process.removeAllListeners('SIGUSR2');
      }
    });
    // A field of that name would take the place of the line's own level.
    expect(text).not.toMatch(/"level":.*"level":/);
    const lines = text.split('\n').filter((line) => line !== '');
    return lines.map((line) => (JSON.parse(line) as { msg: string }).msg);
  }

  it('raises the level for ten minutes, for loggers that exist and for new ones', async () => {
    const lines = await messages(({ clock, signal, say }) => {
      say('before');
      signal();
      say('during');
      clock.jump(10 * MINUTE);
      say('after');
    });
    expect(lines).toEqual([
      'log level raised by SIGUSR2',
      'during, old',
      'during, new',
      'log level restored',
    ]);
  });

  it('restarts the ten minutes when it comes again', async () => {
    const lines = await messages(({ clock, signal, say }) => {
      for (let signals = 0; signals < 2; signals++) {
        signal();
        clock.jump(9 * MINUTE);
      }
      say('still');
      clock.jump(MINUTE);
      say('no more');
      expect(clock.timers).toBe(0);
    });
    expect(lines.filter((message) => !message.startsWith('log level'))).toEqual(['still, old', 'still, new']);
    expect(lines.filter((message) => message === 'log level restored')).toHaveLength(1);
  });
});

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

const PEM = (secret: string): string =>
  `-----BEGIN RSA PRIVATE KEY-----\n${secret}\n-----END RSA PRIVATE KEY-----`;
const WAYS: readonly [string, (secret: string) => Line][] = [
  ['an error', (secret) => ({ fields: { err: leakyError(secret) } })],
  ['an error in place of fields', (secret) => ({ fields: leakyError(secret) })],
  ['the message of an error', (secret) => ({ fields: { error: leakyError(secret).message } })],
  ['a sentence', (secret) => ({ message: `Sent {"token": "${secret}"} to /x?access_token=${secret}` })],
  ['a field', (secret) => ({ fields: { token: secret, Password: secret } })],
  [
    'a field below',
    (secret) => ({ fields: { a: [{ 'client-key-data': secret, secret: { key: secret } }] } }),
  ],
  ['a field of a child', (secret) => ({ bound: { auth: { idToken: secret } } })],
  ['headers', (secret) => ({ fields: { headers: { Authorization: secret, 'set-cookie': [secret] } } })],
  ['a key', (secret) => ({ fields: { pem: PEM(secret) } })],
];

describe.each(LOG_FORMATS)('a log in the format %s', (format) => {
  it.each(WAYS)('does not have the secret of %s', async (_, line) => {
    const secret = 'hunter2-0123456789';
    const { fields = {}, message = 'done', bound = {} } = line(secret);
    const text = await logged({ level: 'trace', format }, (log) => {
      const child = log.child(bound);
      for (const level of LOG_LEVELS) child[level](fields, message);
    });
    expect(text).toContain('[redacted]');
    expect(text).not.toContain(secret);
  });

  it('still has what is needed to understand an error', async () => {
    const text = await logged({ level: 'info', format }, (log) => {
      log.error({ err: leakyError('hunter2-0123456789') }, 'failed');
    });
    for (const part of ['401 for Authorization', 'api.test:6443 failed', 'logger.test.ts'])
      expect(text).toContain(part);
  });
});

it.each<readonly [text: string, clean: string]>([
  ['Get "https://me:pass@api.test/x": EOF', 'Get "https://[redacted]@api.test/x": EOF'],
  [`token ${JWT} has expired`, 'token [redacted] has expired'],
  ['authorization: bearer abcdef123456==', 'authorization: bearer [redacted]'],
  ...[
    'Secret shop/web configured',
    'secrets "web" is forbidden: User "a" cannot get resource "secrets"',
    'spec.token: Invalid value: must be short',
    'image: registry.test/a@sha256:0123',
    'the basic form; tokens of a bearer',
    'mail to someone@example.com',
  ].map((text) => [text, text] as const),
])('redactText of %j makes %j', (text, clean) => {
  expect(redactText(text)).toBe(clean);
});

it.each([
  ['{"level":"info","msg":"Service shop/web created", "n":1.50}\n', undefined],
  ['{"kind":"Secret","namespace":"shop","msg":"Secret shop/web created"}\n', undefined],
  ['{"token":"hunter2-0123', '{"token":"[redacted]'],
])('redactLine leaves all but credentials as it is, byte by byte: %j', (line, clean = line) => {
  expect(redactLine(line)).toBe(clean);
});
