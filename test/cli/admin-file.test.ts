import { expect, test } from 'vitest';
import { CliError } from '../../src/cli/output.js';
import { FollowedFile } from '../../src/cli/admin-file.js';
import { sectionsIn } from '../../src/cli/sections.js';
import { OperatorError } from '../../src/contract/error.js';
import type { AdminFile, Kind, Sections } from '../../src/contract/kind.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { Metrics } from '../../src/telemetry/metrics.js';
import { recordingLogger } from '../engine/support/builders.js';
import type { LogLine } from '../engine/support/builders.js';
import { settled, VirtualClock } from '../engine/support/virtual-clock.js';

const GONE = new CliError('policy.yaml: there is no such file', 2);

interface Setup {
  readonly policy: FollowedFile;
  /** What the file holds from now on. */
  readonly write: (text: string | CliError) => void;
  /** Two looks, after which a change is taken up. */
  readonly look: (times?: number) => Promise<void>;
  readonly lines: LogLine[];
  /** The kinds that were reported each time. */
  readonly reported: string[][];
  readonly metrics: Metrics;
  readonly stop: () => void;
}

/** A kind that follows its section, another one, and one that is made of it at the start. */
const app: Kind = { ...appService, settingsSchema: appService.policySchema! };
const kinds: readonly Kind[] = [
  app,
  { ...app, name: 'other' },
  { ...app, name: 'proxy', policyAtStart: true },
];

/** Schemas don't say that this can't work. */
function refuseThirteen({ proxy }: Sections): void {
  if ((proxy as { readonly maxSize?: number } | undefined)?.maxSize !== 13) return;
  throw new OperatorError({ reason: 'InvalidInput', message: 'proxy: 13 is of no use; give another' });
}

async function following(begin: string, name: AdminFile = 'policy'): Promise<Setup> {
  let content: string | CliError = begin;
  const [lines, reported]: [LogLine[], string[][]] = [[], []];
  const [clock, metrics, stopping] = [new VirtualClock(), new Metrics(), new AbortController()];
  const policy = await FollowedFile.open({
    ...{ name, file: 'policy.yaml' },
    read: () => (typeof content === 'string' ? Promise.resolve(content) : Promise.reject(content)),
    parse: (...given) => sectionsIn(...given, [...kinds, { ...app, name: 'idle' }]),
    kinds,
    ...{ clock, metrics, log: recordingLogger(lines) },
  });
  policy.follow(stopping.signal, {
    check: refuseThirteen,
    changed: (names) => void reported.push([...names]),
  });
  const look = async (times = 2): Promise<void> => {
    for (let n = 0; n < times; n++) {
      await clock.advance(2_000);
      await settled();
    }
  };
  const write = (text: string | CliError): void => {
    content = text;
  };
  const stop = (): void => {
    stopping.abort();
  };
  return { policy, write, look, lines, reported, metrics, stop };
}

const small = 'appservice: { maxSize: 3 }';
const large = 'appservice: { maxSize: 30 }';

async function counted(metrics: Metrics): Promise<string[]> {
  const text = await metrics.scrape();
  return text.split('\n').filter((line) => line.startsWith('reconstruct_policy_'));
}

test('what the file says is in force after two polls, and is reported with a digest', async () => {
  const { policy, write, look, lines, reported, metrics } = await following(large);
  const before = policy.digest;
  write(small);

  await look(1);
  expect(policy.current).toEqual({ appservice: { maxSize: 30 } });
  await look(1);

  expect(policy.current).toEqual({ appservice: { maxSize: 3 } });
  expect(reported).toEqual([['appservice']]);
  expect(policy.digest).not.toBe(before);
  expect(lines).toEqual([
    {
      level: 'info',
      fields: { policy: 'policy.yaml', digest: policy.digest, kinds: ['appservice'] },
      message: 'policy changed and is in force',
    },
  ]);
  expect(await counted(metrics)).toEqual([
    'reconstruct_policy_changes_total{outcome="in_force"} 1',
    'reconstruct_policy_refused 0',
    'reconstruct_policy_needs_restart 0',
  ]);
});

test.each([
  ['nonsense', 'appservice: { maxSize: many }', /is a string, not an integer/],
  ['nothing', '', /holds nothing/],
  ['an unknown kind', 'appservise: {}', /did you mean appservice/],
  ['no file', GONE, /there is no such file/],
])('%s changes nothing, and is reported once', async (_, content, why) => {
  const { policy, write, look, lines, reported, metrics } = await following(large);
  write(content);

  await look(50);

  expect(policy.current).toEqual({ appservice: { maxSize: 30 } });
  expect(reported).toEqual([]);
  expect(lines).toMatchObject([
    { level: 'error', fields: { inForce: policy.digest, errors: [expect.stringMatching(why)] } },
  ]);
  expect(await counted(metrics)).toEqual([
    'reconstruct_policy_changes_total{outcome="refused"} 1',
    'reconstruct_policy_refused 1',
    'reconstruct_policy_needs_restart 0',
  ]);
});

test('after a mistake what is right again counts, be it what it was before', async () => {
  const { policy, write, look, reported, metrics, lines } = await following(large);
  for (const content of [GONE, 'nonsense', large, GONE, small]) {
    write(content);
    await look();
  }
  expect(policy.current).toEqual({ appservice: { maxSize: 3 } });
  expect(reported).toEqual([['appservice']]);
  expect(lines.map(({ level }) => level)).toEqual(['error', 'error', 'info', 'error', 'info']);
  expect(await counted(metrics)).toContain('reconstruct_policy_refused 0');
});

test('what is being written is not taken for the whole', async () => {
  const { policy, write, look, lines } = await following(large);
  for (const content of ['', 'appservice: {}', GONE, large]) {
    write(content);
    await look(1);
  }
  await look();
  expect(policy.current).toEqual({ appservice: { maxSize: 30 } });
  expect(lines).toEqual([]);
});

const proxy = (size: number): string => `${large}\nproxy: { maxSize: ${size} }`;

test('what is taken at the start alone is never reported to be in force: it needs a restart', async () => {
  const { policy, write, look, lines, reported, metrics } = await following(proxy(1));
  write(proxy(2));

  await look(10);

  expect(policy.current.proxy).toEqual({ maxSize: 1 });
  expect(reported).toEqual([]);
  expect(lines).toEqual([
    {
      level: 'warn',
      fields: { policy: 'policy.yaml', digest: policy.digest, kinds: ['proxy'] },
      message: 'policy of these kinds changed and needs a restart, keeping the one of the start',
    },
  ]);
  expect(await counted(metrics)).toEqual([
    'reconstruct_policy_changes_total{outcome="needs_restart"} 1',
    'reconstruct_policy_refused 0',
    'reconstruct_policy_needs_restart 1',
  ]);
});

test('what a kind can’t work with is refused as a whole, be it right by the schemas', async () => {
  const { policy, write, look, lines, reported, metrics } = await following(large);
  write(`${small}\nproxy: { maxSize: 13 }`);

  await look(10);

  expect(policy.current.appservice).toEqual({ maxSize: 30 });
  expect(reported).toEqual([]);
  expect(lines).toMatchObject([
    {
      level: 'error',
      fields: { inForce: policy.digest, errors: ['proxy: 13 is of no use; give another'] },
    },
  ]);
  expect(await counted(metrics)).toContain('reconstruct_policy_refused 1');
});

test('settings are followed in the same way, and no kind waits for a restart', async () => {
  const { policy, write, look, lines, reported, metrics } = await following(proxy(1), 'settings');
  for (const content of [proxy(2), 'nonsense']) {
    write(content);
    await look();
  }

  expect(policy.current.proxy).toEqual({ maxSize: 2 });
  expect(reported).toEqual([['proxy']]);
  expect(lines).toMatchObject([
    {
      ...{ level: 'info', message: 'settings changed and are in force' },
      fields: { settings: 'policy.yaml', kinds: ['proxy'] },
    },
    { level: 'error', message: 'changed settings refused, keeping the previous ones' },
  ]);
  const text = await metrics.scrape();
  expect(text.split('\n').filter((line) => /^reconstruct_(settings|policy)_/.test(line))).toEqual([
    ...['policy_refused 0', 'policy_needs_restart 0'].map((line) => `reconstruct_${line}`),
    'reconstruct_settings_changes_total{outcome="in_force"} 1',
    'reconstruct_settings_changes_total{outcome="refused"} 1',
    'reconstruct_settings_refused 1',
  ]);
});
