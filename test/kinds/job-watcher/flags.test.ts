import { describe, expect, test } from 'vitest';
import { deletesPerSecondOf, flags, settingsOf } from '../../../src/kinds/job-watcher/settings.js';

const render = (): [] => [];

describe('settings', () => {
  test('by default the operator’s own namespace is the admin’s, and protected beside the system’s', () => {
    expect(settingsOf({ render, operatorNamespace: 'ops' })).toEqual({
      ...{ adminNamespaces: ['ops'], protectedNamespaces: ['kube-*', 'ops'] },
    });
    expect(settingsOf({ render })).toEqual({ adminNamespaces: [], protectedNamespaces: ['kube-*'] });
  });

  test('default is neither protected nor the admin’s by default: anybody may work there, as the tutorial does', () => {
    expect(settingsOf({ render, operatorNamespace: 'default' })).toEqual({
      ...{ adminNamespaces: [], protectedNamespaces: ['kube-*'] },
    });
  });

  test('flags stand in place of the defaults, not beside them', () => {
    const given = {
      '--jobwatcher-admin-namespaces': ['a', 'b'],
      '--jobwatcher-protected-namespaces': ['c'],
      '--jobwatcher-deletes-per-second': '25',
    };
    expect(settingsOf({ render, flags: given, operatorNamespace: 'ops' })).toEqual({
      ...{ adminNamespaces: ['a', 'b'], protectedNamespaces: ['c'] },
    });
    expect(deletesPerSecondOf({ render, flags: given })).toBe(25);
    expect(deletesPerSecondOf({ render })).toBe(10);
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
