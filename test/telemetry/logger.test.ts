import { expect, it } from 'vitest';
import { logged } from './logged.js';

it('writes one JSON object a line, with the time in RFC 3339 and the level as a word', async () => {
  const text = await logged({ level: 'info', format: 'json' }, (log) => {
    log.child({ kind: 'Widget' }).warn({ name: 'web' }, 'Reconcile failed');
  });
  const line = JSON.parse(text) as Record<string, unknown>;
  expect(line).toEqual({
    level: 'warn',
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as unknown,
    kind: 'Widget',
    name: 'web',
    msg: 'Reconcile failed',
  });
});

it('writes an error with its message and its stack', async () => {
  const text = await logged({ level: 'info', format: 'json' }, (log) => {
    log.error({ err: new TypeError('oops') }, 'threw');
  });
  expect(JSON.parse(text)).toMatchObject({
    err: { type: 'TypeError', message: 'oops', stack: expect.any(String) as unknown },
  });
});

it('writes for people when told so', async () => {
  const text = await logged({ level: 'info', format: 'pretty' }, (log) => {
    log.info({ name: 'web' }, 'Reconciled');
  });
  expect(text).toMatch(/INFO.*Reconciled/);
  expect(() => JSON.parse(text) as unknown).toThrow();
});
