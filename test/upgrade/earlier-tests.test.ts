import { expect, test } from 'vitest';
import { othersNotPassed } from './earlier-tests.js';

const file = {
  tasks: [
    { name: 'passed', result: { state: 'pass' } },
    { name: 'failed', result: { state: 'fail' } },
    { name: 'left out' },
    { name: 'later', result: { state: 'queued' } },
  ],
};

test("what hasn't passed before a test is told", () => {
  expect(othersNotPassed({ name: 'recording', file })).toEqual(['failed', 'left out', 'later']);
});

test('what has passed in this very file is known, and a test is none of its others', ({ task }) => {
  expect(othersNotPassed(task)).toEqual([]);
});
