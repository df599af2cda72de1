import { describe } from 'vitest';
import { behavesAsAnOperator } from './support/behaviour.js';
import { scheduledTaskUnderTest } from './support/kind-under-test.js';

const scheduledTask = await scheduledTaskUnderTest();

describe('ScheduledTask, a kind from outside', () => {
  behavesAsAnOperator(scheduledTask, ['operator-2', 'operator-3']);
});
