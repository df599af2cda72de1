import { expect, test } from 'vitest';
import { runController } from '../../src/cli/run.js';

test.each([
  [
    { selector: 'a', kinds: ['appservice', 'jobwatcher'] },
    '--selector: all custom resources of jobwatcher decide together about what they share; name the others with --kinds appservice',
  ],
  [
    { watchNamespaceSelector: 'a', kinds: ['streamingress'] },
    '--watch-namespace-selector: all custom resources of streamingress decide together about what they share; leave it out',
  ],
])('%j is refused: kinds that share objects', async (options, message) => {
  await expect(runController(options as never)).rejects.toThrow(message);
});
