import { expect, test } from 'vitest';
import { suggest } from '../../src/contract/suggest.js';

test.each([
  ['imge', 'image'],
  ['imgae', 'image'],
  ['IMAGE', 'image'],
  ['protcol', 'protocol'],
  ['targetport', 'targetPort'],
  ['ab', undefined],
  ['replicas', undefined],
])('%s is taken for %s', (word, expected) => {
  expect(suggest(word, ['image', 'protocol', 'targetPort', 'size'])).toBe(expected);
});
