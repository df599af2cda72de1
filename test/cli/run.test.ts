import { expect, test } from 'vitest';
import { runController } from '../../src/cli/run.js';
import { widgetKind } from '../synth/fixtures.js';

test.each([
  [
    { selector: 'a', kinds: ['appservice', 'jobwatcher'] },
    '--selector: custom resources of jobwatcher decide together about what they share; name the others with --kinds appservice',
  ],
  [
    { watchNamespaceSelector: 'a', kinds: ['streamingress'] },
    '--watch-namespace-selector: custom resources of streamingress decide together about what they share; leave it out',
  ],
])('%j is refused: kinds that share objects', async (options, message) => {
  await expect(runController(options as never)).rejects.toThrow(message);
});

test('a selector of namespaces is refused for kinds whose custom resources are in none', async () => {
  const builtIn = [widgetKind(), widgetKind({ kind: 'Globe', scope: 'Cluster' })];
  const options = { builtIn, watchNamespaceSelector: 'a', kinds: ['widget', 'globe'] };
  await expect(runController(options as never)).rejects.toThrow(
    '--watch-namespace-selector: custom resources of globe are in no namespace; name the others with --kinds widget',
  );
});
