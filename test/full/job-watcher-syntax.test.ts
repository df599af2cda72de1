import { beforeAll, expect, test } from 'vitest';
import { durationSeconds } from '../../src/kinds/job-watcher/duration.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import { compileRegularExpression } from '../../src/values/regular-expression.js';
import { formatProblem } from '../../src/validate/problem.js';
import type { Problem } from '../../src/validate/problem.js';
import { durations, patterns } from '../kinds/job-watcher/syntax.js';
import { collection, installCrd } from '../support/cluster.js';
import type { Answer } from '../support/cluster.js';
import { openCluster } from '../support/test-clusters.js';
import { differences, offline } from '../support/verdicts.js';

const cluster = openCluster();
const judge = offline(jobWatcher.crd);
let path: string;

beforeAll(async () => {
  await installCrd(cluster, jobWatcher);
  path = collection(jobWatcher.type, await cluster.makeNamespace('job-watcher-syntax'));
});

interface Case {
  readonly text: string;
  readonly object: object;
  readonly answer: Answer;
  readonly problems: readonly Problem[];
}

/** Both verdicts on each text, which `specOf` puts into a spec. */
async function judged(texts: readonly string[], specOf: (text: string) => object): Promise<Case[]> {
  const { apiVersion, kind } = jobWatcher.type;
  const cases: Case[] = [];
  for (let at = 0; at < texts.length; at += 64) {
    const some = texts.slice(at, at + 64).map(async (text): Promise<Case> => {
      const object = { apiVersion, kind, metadata: { name: 'sweeper' }, spec: specOf(text) };
      const query = { dryRun: 'All', fieldValidation: 'Strict' };
      const answer = await cluster.send('POST', path, { body: object, query });
      return { text, object, answer, problems: judge(object) };
    });
    cases.push(...(await Promise.all(some)));
  }
  return cases;
}

function accepted(cases: readonly Case[]): Case[] {
  return cases.filter(({ answer }) => answer.status === 201);
}

function unlike(cases: readonly Case[]): string[] {
  return cases.flatMap(({ text, ...verdicts }) => differences({ name: JSON.stringify(text), ...verdicts }));
}

/** What the parser of regular expressions says: `missing closing ): `(``; of an escape sequence it quotes more or less. */
function parserSays(text: string): string | undefined {
  const [, said, quoted = ''] = /error parsing regexp: ([^`]*)(?:`([^]*)`)?/.exec(text) ?? [];
  const what = said?.replace(/(escape sequence|end of expression).*/s, '$1');
  return what === said ? `${what}\`${quoted}\`` : what;
}

test(
  'a pattern has one verdict offline, online and where it is used, and the parser’s own words',
  { timeout: 300_000 },
  async () => {
    const all = await judged(patterns(2_000, 17), (text) => ({ jobNamePatterns: [text] }));
    // The bound on their size is the operator's own.
    const cases = all.filter(
      ({ problems }) => !/size .*at most \d+ is allowed/.test(problems.map(formatProblem).join()),
    );
    expect(cases.length).toBeGreaterThan(0.95 * all.length);

    const taken = accepted(cases);
    console.log(`${cases.length} patterns, ${taken.length} of them accepted`);
    expect(taken.length).toBeGreaterThan(300);
    expect(cases.length - taken.length).toBeGreaterThan(300);
    expect(unlike(cases)).toEqual([]);
    const told = cases
      .filter(({ answer }) => answer.status === 422)
      .map(({ text, answer, problems }) => ({
        text,
        online: parserSays(String(answer.body.message)),
        offline: parserSays(problems.map(formatProblem).join()),
      }))
      .filter(({ online }) => online !== undefined);
    expect(told.length).toBeGreaterThan(300);
    expect(told.filter(({ online, offline: here }) => online !== here)).toEqual([]);
    expect(taken.filter(({ text }) => !isUsable(text)).map(({ text }) => text)).toEqual([]);
  },
);

function isUsable(pattern: string): boolean {
  try {
    return compileRegularExpression(pattern).test('a'.repeat(63)) || true;
  } catch {
    return false;
  }
}

test('a duration has one verdict offline, online and where it is used', { timeout: 300_000 }, async () => {
  const texts = durations(2_000, 19);
  const cases = await judged(texts, (text) => ({ completedTTL: text }));
  const frequencies = await judged(texts.slice(-600), (text) => ({ frequency: text }));

  const taken = accepted(cases);
  console.log(
    `${cases.length + frequencies.length} durations, ${taken.length + accepted(frequencies).length} of them accepted`,
  );
  expect(taken.length).toBeGreaterThan(300);
  expect(cases.length - taken.length).toBeGreaterThan(300);
  expect(accepted(frequencies).length).toBeGreaterThan(50);
  expect([...unlike(cases), ...unlike(frequencies)]).toEqual([]);
  const used = (text: string): boolean => durationSeconds(text) !== undefined;
  const differently = cases.filter(
    ({ text, answer }) => text.length <= 64 && used(text) !== (answer.status === 201),
  );
  expect(differently.map(({ text }) => text)).toEqual([]);
});
