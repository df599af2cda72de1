import { expect, test } from 'vitest';
import { commandsIn, filesIn } from './full/support/documented.js';

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

test('the files of a page are the blocks that begin with a name', () => {
  const page = [
    ...['```ts', '// kind.ts', 'one();', '```'],
    ...['```yaml', '# sample.yaml', 'a: 1', '```'],
    ...['```ts', '// what it does', 'two();', '```'],
    ...['```go', '// main.go', '```'],
  ].join('\n');

  expect([...filesIn(page)]).toEqual([
    ['kind.ts', '// kind.ts\none();\n'],
    ['sample.yaml', '# sample.yaml\na: 1\n'],
  ]);
});
