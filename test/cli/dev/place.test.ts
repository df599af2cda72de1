import { expect, test } from 'vitest';
import { placeOf } from '../../../src/cli/dev/load.js';

const root = '/work/guestbook';

const frames = `    at defineKind (file:///work/guestbook/node_modules/reconstruct/lib/contract/define-kind.js:40:11)
    at file:///work/guestbook/src/kind.ts:12:19
    at ModuleJob.run (node:internal/modules/esm/module_job:561:25)
    at async file:///opt/reconstruct/lib/cli/config.js:3:1`;

test.each([
  [
    'the line where a text in TypeScript is none',
    `/work/guestbook/src/kind.ts:2\nconst b = ;\n          ^\n\nSyntaxError: Expression expected`,
    'src/kind.ts:2',
  ],
  [
    'that of a module',
    `file:///work/guestbook/web.mjs:7\nconst = 2;\n      ^\n\nSyntaxError: Unexpected token`,
    'web.mjs:7',
  ],
  ['the innermost line of the author', `OperatorError: no child\n${frames}`, 'src/kind.ts:12'],
  ['a constructor', `TypeError: boo\n    at new Web (/work/guestbook/src/web.ts:5:7)`, 'src/web.ts:5'],
  ['nothing where it is somewhere else', `Error: boo\n    at file:///work/other/kind.ts:1:2`, undefined],
  ['nothing of what only mentions a file', `Error: can't read /work/guestbook/x.yaml:3:1`, undefined],
])('of a stack: %s', (_, stack, place) => {
  expect(placeOf(stack, root)).toBe(place);
});
