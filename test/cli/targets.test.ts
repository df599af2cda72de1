import { expect, test } from 'vitest';
import { meansKind, targetsOf } from '../../src/cli/targets.js';
import { appServiceOfExample } from '../../src/kinds/app-service/kind.js';
import { builtInKinds } from '../../src/kinds/index.js';

const found = (words: string, kinds = builtInKinds, selector?: string) =>
  targetsOf(words === '' ? [] : words.split(' '), kinds, selector).map(({ kind, name }) =>
    [kind.crd.metadata.name, ...(name === undefined ? [] : [name])].join(' '),
  );

const APPS = 'appservices.kosmos.io';

test.each<[words: string, targets: readonly string[]]>([
  ['', builtInKinds.map(({ crd }) => crd.metadata.name)],
  ['appsvc', [APPS]],
  ['appservice/web', [`${APPS} web`]],
  ['AppServices web api', [`${APPS} web`, `${APPS} api`]],
  ['appsvc web web', [`${APPS} web`]],
  ['appservices.kosmos.io/web', [`${APPS} web`]],
  ['jobwatcher/web appsvc/web', ['jobwatchers.batch.my.github.com web', `${APPS} web`]],
])('%j names what kubectl would take it for', (words, targets) => {
  expect(found(words)).toEqual(targets);
});

const WRITE = 'write KIND NAME..., as in appservice web, or KIND/NAME..., as in appservice/web';

test.each<[words: string, message: string | RegExp, selector?: string]>([
  ['web', /^web: there is no kind web; the kinds are appservice/],
  ['appservice/', `appservice/: ${WRITE}`],
  ['a/b/c', `a/b/c: ${WRITE}`],
  ['appsvc/web web', `appsvc/web web: ${WRITE}`],
  ['appsvc appsvc/web', `appsvc appsvc/web: ${WRITE}`],
  ['apsvc/web', 'apsvc/web: there is no kind apsvc; did you mean appsvc?'],
  ['apsvc web', 'apsvc: there is no kind apsvc; did you mean appsvc?'],
  ['appsvc web', 'appsvc web: a name and --selector exclude each other; leave out one', 'app=web'],
])('%j is bad input', (words, message, selector) => {
  const error =
    typeof message === 'string' ? { message } : { message: expect.stringMatching(message) as string };
  expect(() => found(words, builtInKinds, selector)).toThrow(
    expect.objectContaining({ ...error, exitCode: 2 }) as Error,
  );
});

test('a name of two kinds asks for the group, which distinguishes them', () => {
  const kinds = [...builtInKinds, appServiceOfExample];
  expect(() => found('appservice/web', kinds)).toThrow(
    'several kinds are called appservice; write appservice.kosmos.io/web or appservice.app.example.com/web',
  );
  expect(found('appservice.app.example.com/web', kinds)).toEqual(['appservices.app.example.com web']);
});

test.each([
  ['appsvc/web', true],
  ['apsvc', true],
  ['apsvc/web', true],
  ['web.yaml', false],
  ['shop', false],
])('%s, which is no file, was meant to name a kind: %s', (word, expected) => {
  expect(meansKind(word, builtInKinds)).toBe(expected);
});
