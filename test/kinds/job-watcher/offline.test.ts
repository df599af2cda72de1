import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { jobWatcher } from '../../../src/kinds/job-watcher/kind.js';
import { InputError } from '../../../src/synth/problem.js';
import { synth } from '../../../src/synth/synth.js';
import { brokenRules, edges, outOfBounds } from './broken-rules.js';

/** What `synth` says to a spec. */
async function answerTo(
  spec: object,
): Promise<{ files: number; problems: readonly string[]; notes: string[] }> {
  const notes: string[] = [];
  const cr = {
    apiVersion: 'batch.my.github.com/v1',
    kind: 'JobWatcher',
    metadata: { name: 'sweeper' },
    spec,
  };
  const stdin = (): Promise<Buffer> => Promise.resolve(Buffer.from(stringify(cr)));
  try {
    const note = (line: string): number => notes.push(line);
    const files = await synth({ kinds: [jobWatcher], sources: ['-'], stdin, note });
    return { files: files.length, problems: [], notes };
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return { files: 0, problems: error.lines, notes };
  }
}

describe('offline', () => {
  test.each(brokenRules.map((broken) => ({ what: JSON.stringify(broken.spec).slice(0, 70), ...broken })))(
    'refuses $what, at its path and in the same words',
    async ({ spec, valid, path, messages }) => {
      const { problems } = await answerTo(spec);

      expect(problems).toHaveLength(1);
      for (const part of [path, ...messages]) expect(problems[0]).toContain(part);
      expect((await answerTo(valid)).problems).toEqual([]);
    },
  );

  test.each(outOfBounds.map(({ spec, path }) => ({ what: JSON.stringify(spec).slice(0, 70), spec, path })))(
    'refuses $what',
    async ({ spec, path }) => {
      const { problems } = await answerTo(spec);

      expect(problems).toHaveLength(1);
      expect(problems[0]).toContain(path);
    },
  );

  test.each(edges.map((spec) => ({ what: JSON.stringify(spec).slice(0, 70), spec })))(
    'takes $what',
    async ({ spec }) => {
      expect((await answerTo(spec)).problems).toEqual([]);
    },
  );
});

test.each<[patterns: string[], told: RegExp]>([
  [['.{0,1000}'.repeat(2)], /spec\.jobNamePatterns\[0\]: .*size 400\d, at most 1500 is allowed; give less/],
  [['ok', '.{0,1000}'.repeat(27)], /spec\.jobNamePatterns\[1\]: .*at most 20000 is allowed/],
  [
    Array.from({ length: 64 }, (_, index) => `^x{0,100}${index}`),
    /spec: the patterns have a size of \d+, at most 5000/,
  ],
])('refuses patterns that the operator would refuse as too large: %j', async (jobNamePatterns, told) => {
  expect((await answerTo({ jobNamePatterns })).problems).toEqual([expect.stringMatching(told)]);
});

test('makes no objects, and says so', async () => {
  expect(await answerTo({ completedTTL: '15s' })).toEqual({
    ...{ files: 0, problems: [] },
    notes: [expect.stringContaining('a JobWatcher makes no objects')],
  });
});
