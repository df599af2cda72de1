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

test.each<[flag: string, value: string, isTaken: boolean]>([
  ['--jobwatcher-admin-namespaces', 'ops', true],
  ['--jobwatcher-admin-namespaces', 'team-*', false],
  ['--jobwatcher-admin-namespaces', 'Ops', false],
  ['--jobwatcher-admin-namespaces', '', false],
  ['--jobwatcher-protected-namespaces', 'team-*', true],
  ['--jobwatcher-protected-namespaces', 'a_b', false],
  ['--jobwatcher-deletes-per-second', '1', true],
  ['--jobwatcher-deletes-per-second', '1000', true],
  ['--jobwatcher-deletes-per-second', '1001', false],
  ['--jobwatcher-deletes-per-second', '0', false],
  ['--jobwatcher-deletes-per-second', '1.5', false],
  ['--jobwatcher-deletes-per-second', 'many', false],
])('%s takes %j: %s', (name, value, isTaken) => {
  const problem = flags.find((flag) => flag.name === name)?.check?.(value);

  expect(problem === undefined).toBe(isTaken);
  if (!isTaken) expect(problem).toContain(`"${value}"`);
});
