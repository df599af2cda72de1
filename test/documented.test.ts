import { expect, test } from 'vitest';
import { commandsIn } from './cluster/support/documented.js';

test('the commands of a page are those in its blocks, without comments and what they print', () => {
  const page = [
    ...[
      '```sh',
      'kubectl get pods # all of them',
      '',
      'reconstruct synth x.yaml # refused: exit code 2',
      '```',
    ],
    ...['```text', 'no command', '```'],
    ...['```console', '$ kubectl get appsvc', 'NAME   READY', 'web    True', '```'],
  ].join('\n');

  expect(commandsIn(page)).toEqual([
    { text: 'kubectl get pods', exitCode: 0 },
    { text: 'reconstruct synth x.yaml', exitCode: 2 },
    { text: 'kubectl get appsvc', exitCode: 0 },
  ]);
});
