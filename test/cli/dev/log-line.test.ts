import { expect, test } from 'vitest';
import { readLogLine } from '../../../src/cli/dev/log-line.js';

const line = (entry: object): string => JSON.stringify({ level: 'info', msg: 'Said', ...entry });

test.each([
  ['what the author prints', 'hello', { what: 'printed', text: 'hello' }],
  ['JSON that the author prints', '{"a":1}', { what: 'printed', text: '{"a":1}' }],
  [
    'that a kind is worked on',
    line({ msg: 'Controller started', controller: 'note' }),
    { what: 'started', controller: 'note' },
  ],
  ['what is of no interest', line({}), { what: 'quiet' }],
  [
    'a warning, with what it is about and why',
    line({ level: 'warn', controller: 'note', namespace: 'a', name: 'b', error: 'may not\nlist' }),
    { what: 'warn', text: 'note a/b: Said: may not' },
  ],
  [
    'a failure, with what it is about and why apart too',
    line({
      ...{ level: 'warn', controller: 'note', kind: 'Note', namespace: 'a', name: 'b' },
      ...{
        msg: 'Reconcile failed',
        reason: 'RenderFailed',
        error: 'cannot be rendered',
        err: { message: 'boo' },
      },
    }),
    { what: 'warn', text: 'Note a/b: Reconcile failed: boo', failure: { of: 'Note a/b', cause: 'boo' } },
  ],
  [
    'an error, with what was thrown',
    line({ level: 'error', err: { message: 'boo', stack: 'boo at' } }),
    { what: 'error', text: 'Said: boo' },
  ],
])('of the output of a controller: %s', (_, text, told) => {
  expect(readLogLine(text)).toEqual(told);
});
