import { expect, it } from 'vitest';
import { OperatorError } from '../../src/contract/error.js';

it('cuts a message in which a user has written too much', () => {
  const { message } = new OperatorError({ reason: 'Odd', message: 'y'.repeat(1_300_000) });
  expect(message).toMatch(/^y{4096}\.\.\. \(1300000 characters\)$/);
  expect(new OperatorError({ reason: 'Odd', message: 'y'.repeat(4_096) }).message).toHaveLength(4_096);
  expect(new OperatorError({ reason: 'Odd', message: `a${'😀'.repeat(3_000)}` }).message.isWellFormed()).toBe(
    true,
  );
});
