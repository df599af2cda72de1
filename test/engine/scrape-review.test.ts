import { expect, test } from 'vitest';
import type { Api } from '../../src/client/api.js';
import { SCRAPE_REVIEW } from '../../src/client/retry.js';
import { ScrapeReview } from '../../src/engine/loop/scrape-review.js';
import { recordingLogger } from './support/builders.js';
import type { LogLine } from './support/builders.js';
import { VirtualClock } from './support/virtual-clock.js';

const scraper = { username: 'prometheus', uid: '1', groups: ['monitors'], extra: { a: ['b'] } };
const known = { authenticated: true, user: scraper };

/** An API server that answers reviews in order of kind, the last one again and again. */
function reviewed(answers: { readonly TokenReview?: unknown; readonly SubjectAccessReview?: unknown }) {
  const asked: { readonly kind: string; readonly spec: object }[] = [];
  const lines: LogLine[] = [];
  const clock = new VirtualClock();
  const api: Pick<Api, 'review'> = {
    review: <T>(_: string, kind: string, spec: object): Promise<T> => {
      asked.push({ kind, spec });
      const answer = answers[kind as keyof typeof answers];
      return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer as T);
    },
  };
  const { refusal } = new ScrapeReview({ api, clock, log: recordingLogger(lines) });
  return {
    asked,
    answers,
    lines,
    clock,
    ask: async (header?: string, source?: string) => (await refusal(header, '/metrics', source))?.status,
  };
}

test.each<[string, string | undefined, Parameters<typeof reviewed>[0], number | undefined, number]>([
  [
    'who may get the path',
    'Bearer t',
    { TokenReview: known, SubjectAccessReview: { allowed: true } },
    undefined,
    2,
  ],
  ['no token', undefined, {}, 401, 0],
  ['another scheme', 'Basic dDp0', {}, 401, 0],
  ['an unknown token', 'Bearer t', { TokenReview: { authenticated: false } }, 401, 1],
  ['a review without a user', 'Bearer t', { TokenReview: { authenticated: true } }, 401, 1],
  ['an empty review', 'Bearer t', { TokenReview: {} }, 401, 1],
  ['no right', 'Bearer t', { TokenReview: known, SubjectAccessReview: { allowed: false } }, 403, 2],
  [
    'denied',
    'Bearer t',
    { TokenReview: known, SubjectAccessReview: { allowed: true, denied: true } },
    403,
    2,
  ],
  ['nothing decided', 'Bearer t', { TokenReview: known, SubjectAccessReview: {} }, 403, 2],
  ['no answer', 'Bearer t', { TokenReview: new Error('away') }, 500, 1],
  ['none to the second', 'Bearer t', { TokenReview: known, SubjectAccessReview: new Error('away') }, 500, 2],
])('%s', async (_, header, answers, status, requests) => {
  const { ask, asked } = reviewed(answers);

  expect(await ask(header)).toBe(status);
  expect(asked).toHaveLength(requests);
});

test('the API server is asked about the user of the token, and the path', async () => {
  const { ask, asked } = reviewed({ TokenReview: known, SubjectAccessReview: { allowed: true } });
  await ask('bearer  secret ');

  const { username: user, ...rest } = scraper;
  expect(asked).toEqual([
    { kind: 'TokenReview', spec: { token: 'secret' } },
    {
      kind: 'SubjectAccessReview',
      spec: { user, ...rest, nonResourceAttributes: { path: '/metrics', verb: 'get' } },
    },
  ]);
});

test('a decision holds for a while, for its token alone, and one without an answer for none', async () => {
  const { ask, asked, answers, clock } = reviewed({
    TokenReview: known,
    SubjectAccessReview: { allowed: true },
  });
  await Promise.all([ask('Bearer a'), ask('Bearer a')]);
  expect(asked).toHaveLength(2);
  Object.assign(answers, { SubjectAccessReview: { allowed: false } });
  expect([await ask('Bearer a'), await ask('Bearer b')]).toEqual([undefined, 403]);
  await clock.advance(SCRAPE_REVIEW.refused - 1);
  Object.assign(answers, { SubjectAccessReview: { allowed: true } });
  expect(await ask('Bearer b')).toBe(403);
  await clock.advance(1);
  expect(await ask('Bearer b')).toBeUndefined();

  await clock.advance(SCRAPE_REVIEW.allowed - SCRAPE_REVIEW.refused);
  Object.assign(answers, { TokenReview: new Error('away') });
  expect(await ask('Bearer a')).toBe(500);
  Object.assign(answers, { TokenReview: known });
  expect(await ask('Bearer a')).toBeUndefined();
});

test('a failure is logged when it begins and when it ends, without the token', async () => {
  const { ask, answers, lines } = reviewed({
    TokenReview: new Error('403 no right'),
    SubjectAccessReview: { allowed: true },
  });
  await ask('Bearer secret');
  await ask('Bearer secret');
  Object.assign(answers, { TokenReview: known });
  await ask('Bearer secret');

  expect(lines.map(({ level, message }) => [level, message])).toEqual([
    ['warn', 'request refused, not authorized by the API server'],
    ['info', 'requests are authorized again'],
  ]);
  expect(JSON.stringify(lines)).not.toContain('secret');
});

/** Asks with so many tokens, each from an address of its own, as fast as they may be reviewed. */
async function askWithMany({ ask, clock }: ReturnType<typeof reviewed>, count: number): Promise<void> {
  for (let each = 0; each < count; each++) {
    if (each % SCRAPE_REVIEW.unknown === 0) await clock.advance(1_000);
    await ask(`Bearer ${each}`, `source-${each}`);
  }
}

test('a flood of unknown tokens displaces refusals, and not the permission of a scraper', async () => {
  const review = reviewed({ TokenReview: known, SubjectAccessReview: { allowed: true } });
  const { ask, asked, answers, clock } = review;
  await ask('Bearer scraper');
  Object.assign(answers, { TokenReview: { authenticated: false } });
  await askWithMany(review, SCRAPE_REVIEW.remembered);
  await clock.advance(1_000);
  asked.length = 0;

  expect(await ask('Bearer scraper')).toBeUndefined();
  expect(await ask(`Bearer ${SCRAPE_REVIEW.remembered - 1}`)).toBe(401);
  expect(asked).toHaveLength(0);
  await ask('Bearer 0');
  expect(asked).toHaveLength(1);
});

test('no more permissions are remembered than there may be scrapers', async () => {
  const review = reviewed({ TokenReview: known, SubjectAccessReview: { allowed: true } });
  const { ask, asked, clock } = review;
  await askWithMany(review, SCRAPE_REVIEW.remembered + 1);
  await clock.advance(1_000);
  asked.length = 0;

  await ask('Bearer 1');
  expect(asked).toHaveLength(0);
  await ask('Bearer 0');
  expect(asked).toHaveLength(2);
});

test('reviews of unknown tokens are bounded, by the second and under way, for each source and together', async () => {
  const answers = { TokenReview: known, SubjectAccessReview: { allowed: true } };
  const { ask, asked, clock } = reviewed(answers);
  const from = (source: string, count: number) =>
    Promise.all(
      [...Array(count).keys()].map((each) => ask(`Bearer ${source}${asked.length}-${each}`, source)),
    );
  const answered = (statuses: readonly unknown[]) => statuses.filter((status) => status !== 503).length;

  expect(answered(await from('a', 3))).toBe(3);
  expect(answered(await from('a', 3))).toBe(SCRAPE_REVIEW.unknownOfSource - 3);
  expect(answered(await from('b', 5))).toBe(SCRAPE_REVIEW.unknownOfSource);
  await clock.advance(1_000);
  const many = await Promise.all(
    [...Array(2 * SCRAPE_REVIEW.unknown).keys()].map((n) => ask(`Bearer c${n}`, `c${n}`)),
  );
  expect(answered(many)).toBe(SCRAPE_REVIEW.unknown);

  // One that gets no answer keeps its place.
  await clock.advance(1_000);
  const { promise, resolve } = Promise.withResolvers<unknown>();
  Object.assign(answers, { TokenReview: promise });
  const open = from('d', SCRAPE_REVIEW.unknownOfSource);
  await clock.advance(5_000);
  expect(await from('d', 1)).toEqual([503]);
  resolve(known);
  expect(answered(await open)).toBe(SCRAPE_REVIEW.unknownOfSource);
  expect(answered(await from('d', 1))).toBe(1);
});

test('concurrent requests with one token are one review', async () => {
  const { ask, asked } = reviewed({ TokenReview: known, SubjectAccessReview: { allowed: true } });
  await Promise.all([...Array(20).keys()].map(() => ask('Bearer a')));
  expect(asked).toHaveLength(2);
});

test('a flood of random tokens keeps no scraper out that was permitted, also when its permission ends', async () => {
  const { ask, asked, clock } = reviewed({ TokenReview: known, SubjectAccessReview: { allowed: true } });
  await ask('Bearer scraper', 'prometheus');
  asked.length = 0;
  let n = 0;
  for (let minute = 0; minute < 10; minute++) {
    await clock.advance(60_000);
    const flood = Array.from({ length: 16 }, () => ask(`Bearer ${n++}`, 'attacker'));
    expect(await ask('Bearer scraper', 'prometheus')).toBeUndefined();
    expect(await ask('Bearer new', 'other')).toBeUndefined();
    await Promise.all(flood);
  }
  expect(asked.length).toBeLessThanOrEqual(10 * 2 * (SCRAPE_REVIEW.unknownOfSource + 2));
});

test('a permission is renewed ahead, and holds on where that gets no answer', async () => {
  const answers: Parameters<typeof reviewed>[0] = {
    TokenReview: known,
    SubjectAccessReview: { allowed: true },
  };
  const { ask, asked, clock } = reviewed(answers);
  await ask('Bearer scraper');
  await clock.advance(SCRAPE_REVIEW.allowed - SCRAPE_REVIEW.ahead);
  Object.assign(answers, { TokenReview: new Error('away') });
  expect(await ask('Bearer scraper')).toBeUndefined();
  await clock.advance(SCRAPE_REVIEW.timeout);
  expect(await ask('Bearer scraper')).toBeUndefined();
  expect(asked).toHaveLength(4);
  Object.assign(answers, { TokenReview: known });
  expect(await ask('Bearer scraper')).toBeUndefined();
  await clock.advance(SCRAPE_REVIEW.allowed - SCRAPE_REVIEW.ahead - 1);
  expect(asked).toHaveLength(6);
  expect(await ask('Bearer scraper')).toBeUndefined();
  expect(asked).toHaveLength(6);

  await clock.advance(1);
  Object.assign(answers, { SubjectAccessReview: { allowed: false } });
  expect(await ask('Bearer scraper')).toBeUndefined();
  await clock.advance(1);
  expect(await ask('Bearer scraper')).toBe(403);
});
