import { describe, expect, test } from 'vitest';
import { CliError } from '../../../src/cli/exit.js';
import type { Plan } from '../../../src/cli/init/code.js';
import { designOf } from '../../../src/cli/init/design.js';
import { withFreeNames } from '../../../src/cli/init/init.js';
import { namesOf } from '../../../src/cli/init/names.js';

test('a project names its kind, its files and its constant', () => {
  expect(namesOf('guest-book')).toEqual({
    ...{ project: 'guest-book', group: 'example.com', kind: 'GuestBook' },
    ...{ file: 'guest-book', variable: 'guestBook' },
  });
  expect(namesOf('ops', 'net.example.org', 'TCPRoute')).toMatchObject({
    ...{ group: 'net.example.org', kind: 'TCPRoute', file: 'tcp-route' },
  });
});

describe('what the modules and the language have already', () => {
  const plan = (kind: string): Plan =>
    withFreeNames({
      ...{ names: namesOf('shop', undefined, kind), library: 'reconstruct' },
      design: designOf(['Deployment', 'Job', 'ConfigMap']),
    });

  test.each(['Switch', 'Package', 'Test', 'Cluster', 'Sample', 'Edited', 'T'])(
    'of a kind %s the constant has a longer name',
    (kind) => {
      const camel = kind.charAt(0).toLowerCase() + kind.slice(1);
      expect(plan(kind).names.variable).toBe(`${camel}Kind`);
    },
  );

  test.each(['Guestbook', 'Operator', 'Image', 'Colour', 'Package2', 'Url', 'Blue'])(
    'of a kind %s it is the kind',
    (kind) => {
      expect(plan(kind).names.variable).toBe(kind.charAt(0).toLowerCase() + kind.slice(1));
    },
  );

  test.each(['Kind', 'Crd', 'Construct', 'ApiObject', 'PropsOf', 'SpecOf', 'JSON', 'Object'])(
    'a class %s is refused',
    (kind) => {
      expect(() => plan(kind)).toThrow(CliError);
      expect(() => plan(kind)).toThrow('choose another');
    },
  );
});

test.each<[project: string, group: string | undefined, kind: string | undefined, told: string]>([
  ['Guest_Book', undefined, undefined, 'NAME: "Guest_Book" can\'t be used: a project is named in at most 63'],
  ['Guest_Book', undefined, undefined, 'as in guest-book'],
  ['1st', undefined, undefined, 'as in st'],
  ['a'.repeat(64), undefined, undefined, 'at most 63'],
  ['../shop', undefined, undefined, 'as in shop'],
  ['', undefined, undefined, 'as in guest-book'],
  ['shop', 'example', undefined, '--group: "example" can\'t be used: a group is a domain in lower case'],
  ['shop', 'Web.example.com', undefined, 'as in web.example.com'],
  ['shop', `${'a.'.repeat(130)}com`, undefined, '--group: '],
  ['shop', 'web.k8s.io', undefined, 'it is reserved for Kubernetes'],
  ['shop', undefined, 'guestBook', '--kind: "guestBook" can\'t be used: a kind is written in PascalCase'],
  ['shop', undefined, 'Guest-Book', 'as in GuestBook'],
  ...['Y', 'N', 'Yes', 'NO', 'On', 'Off', 'True', 'False', 'Null'].map(
    (kind): [string, undefined, string, string] => ['shop', undefined, kind, 'in YAML it is no text'],
  ),
  ['no', undefined, undefined, '--kind: "No" can\'t be used'],
])('the names %j, %j, %j are refused', (project, group, kind, told) => {
  expect(() => namesOf(project, group, kind)).toThrow(CliError);
  expect(() => namesOf(project, group, kind)).toThrow(told);
});
