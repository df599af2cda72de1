import { describe, expect, it } from 'vitest';
import { checkedPath } from '../../src/telemetry/checks.js';
import type { Check } from '../../src/telemetry/checks.js';
import { recordingLogger } from '../engine/support/builders.js';
import type { LogLine } from '../engine/support/builders.js';

/** A path with a check `caches` that fails with what `given.reason` says. */
function aPath() {
  const given: { reason: string | undefined } = { reason: undefined };
  const lines: LogLine[] = [];
  const caches: Check = { name: 'caches', check: () => given.reason };
  const routes = checkedPath('/readyz', [caches], recordingLogger(lines));
  const ask = async (url: string) => {
    const [path = '', query] = url.split('?');
    return routes[path]?.(new URLSearchParams(query));
  };
  return { given, lines, ask };
}

describe('checkedPath', () => {
  it('answers with a word while all is well, and with a line for each check when asked', async () => {
    const { ask } = aPath();
    expect(await ask('/readyz')).toEqual({ status: 200, body: 'ok\n' });
    expect(await ask('/readyz?verbose')).toEqual({
      status: 200,
      body: '[+]ping ok\n[+]caches ok\nreadyz check passed\n',
    });
  });

  it('names what failed, and tells the reason to whoever asks for it', async () => {
    const { given, ask } = aPath();
    given.reason = 'services in shop: no list yet';
    const terse = await ask('/readyz');
    expect(terse).toMatchObject({
      status: 503,
      body: expect.stringContaining('[-]caches failed') as unknown,
    });
    expect(terse?.body).not.toContain('shop');
    expect((await ask('/readyz?verbose'))?.body).toBe(
      '[+]ping ok\n[-]caches failed: services in shop: no list yet\nreadyz check failed\n',
    );
  });

  it('answers for a single check', async () => {
    const { given, ask } = aPath();
    given.reason = 'no';
    expect(await ask('/readyz/ping')).toEqual({ status: 200, body: 'ok\n' });
    expect(await ask('/readyz/caches')).toMatchObject({ status: 503 });
    expect(await ask('/readyz/other')).toBeUndefined();
  });

  it('leaves out what it is asked to, and says which names it does not know', async () => {
    const { given, ask } = aPath();
    given.reason = 'no';
    expect(await ask('/readyz?exclude=caches')).toEqual({ status: 200, body: 'ok\n' });
    expect((await ask('/readyz?exclude=caches&exclude=cashes&verbose'))?.body).toBe(
      '[+]ping ok\n[+]caches excluded: ok\nwarn: nothing to exclude by the name of cashes\nreadyz check passed\n',
    );
  });

  it('logs a failure when it begins and when it ends, however often it is probed', async () => {
    const { given, lines, ask } = aPath();
    for (const reason of [undefined, 'first', 'second', undefined, undefined]) {
      given.reason = reason;
      await ask('/readyz');
    }
    expect(lines).toEqual([
      {
        level: 'info',
        fields: { path: '/readyz', check: 'caches', reason: 'first' },
        message: 'check failed',
      },
      { level: 'info', fields: { path: '/readyz', check: 'caches' }, message: 'check passed again' },
    ]);
  });
});
