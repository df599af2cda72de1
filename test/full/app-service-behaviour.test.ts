import { describe } from 'vitest';
import { behavesAsAnOperator } from './support/behaviour.js';
import { appServiceUnderTest } from './support/kind-under-test.js';

describe('AppService', () => {
  behavesAsAnOperator(appServiceUnderTest, ['operator-0', 'operator-1']);
});
