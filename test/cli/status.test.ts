import { expect, test } from 'vitest';
import { targetOf } from '../../src/cli/status.js';
import { appServiceOfExample } from '../../src/kinds/app-service/example-group.js';
import { builtInKinds } from '../../src/kinds/index.js';

test.each([
  ['appservice/web', 'AppService'],
  ['AppServices/web', 'AppService'],
  ['appsvc/web', 'AppService'],
  ['appservices.kosmos.io/web', 'AppService'],
  ['jobwatcher/web', 'JobWatcher'],
])('%s is found', (text, kind) => {
  expect(targetOf(text, builtInKinds)).toMatchObject({ kind: { type: { kind } }, name: 'web' });
});

test.each([
  ['web', 'web: write KIND/NAME, as in appservice/web'],
  ['appservice/', 'appservice/: write KIND/NAME, as in appservice/web'],
  ['a/b/c', 'a/b/c: write KIND/NAME, as in appservice/web'],
  ['apsvc/web', /^apsvc\/web: there is no kind apsvc; did you mean appsvc\?$/],
  ['pod/web', /^pod\/web: there is no kind pod; the kinds are /],
])('%s is bad input', (text, message) => {
  expect(() => targetOf(text, builtInKinds)).toThrow(message);
  expect(() => targetOf(text, builtInKinds)).toThrow(expect.objectContaining({ exitCode: 2 }) as Error);
});

test('a name of two kinds asks for the group, which distinguishes them', () => {
  const kinds = [...builtInKinds, appServiceOfExample];
  expect(() => targetOf('appservice/web', kinds)).toThrow(
    'several kinds are called appservice; write appservice.kosmos.io/web or appservice.app.example.com/web',
  );
  expect(targetOf('appservice.app.example.com/web', kinds).kind).toBe(appServiceOfExample);
});
