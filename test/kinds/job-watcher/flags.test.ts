import { expect, test } from 'vitest';
import { flags, settingsOf } from '../../../src/kinds/job-watcher/settings.js';

const render = (): [] => [];
const byDefault = { adminNamespaces: [], protectedNamespaces: ['kube-*'], deletesPerSecond: 10 };

test('by default the operator’s own namespace is the admin’s, and protected, but not where that is default', () => {
  expect(settingsOf({ render, operatorNamespace: 'ops' })).toEqual({
    ...{ adminNamespaces: ['ops'], protectedNamespaces: ['kube-*', 'ops'], deletesPerSecond: 10 },
  });
  expect(settingsOf({ render })).toEqual(byDefault);
  expect(settingsOf({ render, operatorNamespace: 'default' })).toEqual(byDefault);
});

test('flags stand in place of the defaults, not beside them', () => {
  const given = {
    '--jobwatcher-admin-namespaces': ['a', 'b'],
    '--jobwatcher-protected-namespaces': ['c'],
    '--jobwatcher-deletes-per-second': '25',
  };
  expect(settingsOf({ render, flags: given, operatorNamespace: 'ops' })).toEqual({
    ...{ adminNamespaces: ['a', 'b'], protectedNamespaces: ['c'], deletesPerSecond: 25 },
  });
});

test.each([
  ['admin-namespaces', ['ops'], ['team-*', 'Ops', '']],
  ['protected-namespaces', ['team-*'], ['a_b']],
  ['deletes-per-second', ['1', '1000'], ['1001', '0', '1.5', 'many']],
])('--jobwatcher-%s takes %j, not %j', (name, taken, refused) => {
  const { check } = flags.find((flag) => flag.name === `--jobwatcher-${name}`)!;

  expect(taken.map((value) => check?.(value))).toEqual(taken.map(() => undefined));
  for (const value of refused) expect(check?.(value)).toContain(`"${value}"`);
});
