import { exportsOf } from './exports.js';
import { GROUPS, TESTING_GROUPS } from './groups.js';
import { placesOn } from './links.js';
import { page } from './page.js';

const API = 'api.md';
const TESTING = 'api-testing.md';

const INTRO = `What \`import { … } from 'reconstruct'\` gives, for whoever writes a kind. [A kind of your own](../your-own-kind.md)
goes through it step by step; what tests are written with is in [\`reconstruct/testing\`](${TESTING}). Types are TypeScript's;
what has to be given stands before what may be left out, whose name ends with a question mark.`;

const TESTING_INTRO = `What \`import { … } from 'reconstruct/testing'\` gives. It works with any test runner, and without one.
[Testing a kind](../testing.md) tells when to use what; what kinds are made of is in [\`reconstruct\`](${API}).`;

/** What authors import from `reconstruct` and from `reconstruct/testing`. */
export const api = exportsOf(['index.ts', 'testing/index.ts']);

/** Every page of the reference of the API, in Markdown, by its file's name. */
export function pages(): Map<string, string> {
  const { 'index.ts': library, 'testing/index.ts': testing } = api;
  return new Map([
    [API, page({ title: 'API: reconstruct', intro: INTRO, groups: GROUPS, exports: library })],
    [
      TESTING,
      page({
        title: 'API: reconstruct/testing',
        intro: TESTING_INTRO,
        groups: TESTING_GROUPS,
        exports: testing,
        elsewhere: placesOn(API, library),
      }),
    ],
  ]);
}
