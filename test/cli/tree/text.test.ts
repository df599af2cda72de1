import { describe, expect, test } from 'vitest';
import type { Paint } from '../../../src/cli/output.js';
import type { ChildStatus, PodStatus, ResourceStatus, Verdict } from '../../../src/cli/tree/model.js';
import { appService } from '../../../src/kinds/app-service/kind.js';
import { jobWatcher } from '../../../src/kinds/job-watcher/kind.js';
import { streamIngress } from '../../../src/kinds/stream-ingress/kind.js';
import { age, linesOf, newLines, noneOf, textOf } from '../../../src/cli/tree/text.js';

const now = new Date('2026-01-01T01:00:00Z');
const created = '2026-01-01T00:00:00Z';
const plain: Paint = (_, text) => text;
const coloured: Paint = (color, text) => `<${color}>${text}</>`;

const ref = (kind: string, name: string) => ({ apiVersion: 'v1', kind, namespace: 'shop', name });

function pod(name: string, rest: Partial<PodStatus> = {}): PodStatus {
  const counts = { ready: true, readyContainers: 1, containers: 1, restarts: 0, state: 'Running' };
  return { ...ref('Pod', name), uid: `uid-${name}`, created, ...counts, ...rest };
}

const stuck = pod('web-5f-b', {
  ...{ ready: false, readyContainers: 0, state: 'CrashLoopBackOff', restarts: 5 },
  message: 'container "web" ends again and again, last with exit code 1 (Error)',
});

function child(kind: string, rest: Partial<ChildStatus> = {}): ChildStatus {
  const message = `${kind} shop/web is applied`;
  return { ...ref(kind, 'web'), uid: `uid-${kind}`, created, phase: 'ready', message, pods: [], ...rest };
}

function resource(rest: Partial<ResourceStatus> = {}): ResourceStatus {
  const verdict: Verdict = {
    ...({ word: 'Stalled', reason: 'CrashLoopBackOff', message: '1 of 2 replicas are available' } as const),
    ...{ since: '2026-01-01T00:58:00Z', current: true },
  };
  const message = 'Deployment shop/web: 1 of 2 pods are available';
  const deployment = child('Deployment', { phase: 'progressing', message, pods: [pod('web-5f-a'), stuck] });
  return {
    ...{ ...ref('AppService', 'web'), uid: 'uid-web', created, verdict, facts: [] },
    children: [deployment, child('Service')],
    ...{ events: [], notes: [], ...rest },
  };
}

const event = {
  ...{ type: 'Warning', reason: 'BackOff', note: 'Back-off restarting failed container', count: 7 },
  ...{ at: '2026-01-01T00:59:30Z', regarding: { kind: 'Pod', name: 'web-5f-b' } },
};

test('a custom resource is a tree down to its pods, with reasons and events, within 80 characters', () => {
  const document = {
    operators: [
      { namespace: 'ops', available: 2, replicas: 2, leader: 'pod-1' },
      { namespace: 'trial', available: 1, replicas: 1, restraints: ['--observe-only', '--drift=warn'] },
    ],
    notes: ['No operator looks after it'],
    resources: [resource({ events: [event] })],
  };
  const text = textOf(document, { now, paint: plain });

  expect(text).toBe(`\
AppService shop/web   60m  Stalled CrashLoopBackOff, for 2m
│   1 of 2 replicas are available
├─ Deployment web     60m  Progressing, 1 of 2 pods are available
│  ├─ Pod web-5f-a    60m  1/1 Running
│  └─ Pod web-5f-b    60m  0/1 CrashLoopBackOff, 5 restarts
│       container "web" ends again and again, last with exit code 1 (Error)
└─ Service web        60m  Ready
  Events
   30s  BackOff (7 times): Pod web-5f-b
          Back-off restarting failed container

Operator in ops: ready, 2 of 2, leader pod-1
Operator in trial: ready, 1 of 1, with --observe-only --drift=warn

No operator looks after it
`);
});

describe('thousands of pods', () => {
  const pods = Array.from({ length: 2003 }, (_, index) => pod(`web-5f-${String(index).padStart(4, '0')}`));
  const many = (all: readonly PodStatus[]) => ({
    notes: [],
    resources: [resource({ children: [child('Deployment', { pods: [...all, stuck] })] })],
  });

  test('are summed up where they are in the same state, and not in wide output', () => {
    const text = textOf(many(pods), { now, paint: plain });
    expect(text.split('\n').slice(2)).toEqual([
      '└─ Deployment web       60m  Ready',
      '   ├─ Pod web-5f-0000   60m  1/1 Running',
      '   ├─ Pod web-5f-0001   60m  1/1 Running',
      '   ├─ Pod web-5f-0002   60m  1/1 Running',
      '   ├─ 2,000 more Pod         1/1 Running',
      '   └─ Pod web-5f-b      60m  0/1 CrashLoopBackOff, 5 restarts',
      '        container "web" ends again and again, last with exit code 1 (Error)',
      '',
    ]);
    expect(textOf(many(pods), { now, paint: plain, isWide: true }).split('\n')).toHaveLength(2009);
  });

  test('make few lines of a log, also as they come and go', () => {
    const texts = (all: readonly PodStatus[]) => linesOf(many(all));
    const first = newLines(new Map(), texts(pods));
    expect(first.filter((line) => line.includes('web-5f-'))).toHaveLength(4);
    expect(first).toContain('Deployment shop/web: 2,000 more Pod: 1/1 Running');
    expect(newLines(texts(pods), texts(pods.slice(0, 900)))).toEqual([
      'Deployment shop/web: 897 more Pod: 1/1 Running',
    ]);
    expect(newLines(texts(pods), texts(pods.slice(0, 1900)))).toEqual([]);
  });

  test('children without pods are summed up in the same way', () => {
    const maps = Array.from({ length: 1000 }, (_, index) =>
      child('ConfigMap', { name: `web-${index}`, message: `ConfigMap shop/web-${index} is applied` }),
    );
    const all = { notes: [], resources: [resource({ children: [...maps, child('Service')] })] };
    expect(textOf(all, { now, paint: plain }).split('\n').slice(2)).toEqual([
      '├─ ConfigMap web-0      60m  Ready',
      '├─ ConfigMap web-1      60m  Ready',
      '├─ ConfigMap web-2      60m  Ready',
      '├─ 997 more ConfigMap        Ready',
      '└─ Service web          60m  Ready',
      '',
    ]);
  });
});

test('what is wrong is coloured, and what is well is green or plain', () => {
  const text = textOf({ operators: [], notes: [], resources: [resource()] }, { now, paint: coloured });
  expect(text).toMatch(/^<red>AppService/m);
  expect(text).toMatch(/^<yellow>├─ Deployment/m);
  expect(text).toMatch(/^<red>│ {2}└─ Pod web-5f-b/m);
  expect(text).toMatch(/^└─ Service/m);
});

test.each([
  [
    { width: 60 },
    `\
AppService shop/web   60m  Stalled CrashLoopBackOff, for 2m
│   1 of 2 replicas are available, and one of them ends
│     again and again
├─ Deployment storefront-gateway-of-the-shop
│  │                  60m  Progressing, 1 of 2 pods are
│  │                       available
│  └─ Pod web         60m  1/1 Running
└─ Service web        60m  Ready
`,
  ],
  [
    { width: Infinity, isWide: true },
    `\
AppService shop/web                            60m  Stalled CrashLoopBackOff, for 2m
│   1 of 2 replicas are available, and one of them ends again and again
├─ Deployment storefront-gateway-of-the-shop   60m  Progressing, 1 of 2 pods are available
│  └─ Pod web                                  60m  1/1 Running, on node-1
└─ Service web                                 60m  Ready
`,
  ],
])(
  'where names are long, %j gives a name that is too long a line of its own, and sentences hang',
  (props, expected) => {
    const message = 'Deployment shop/storefront-gateway-of-the-shop: 1 of 2 pods are available';
    const deployment = child('Deployment', {
      phase: 'progressing',
      message,
      pods: [pod('web', { node: 'node-1' })],
    });
    const long = resource({
      children: [{ ...deployment, name: 'storefront-gateway-of-the-shop' }, child('Service')],
    });
    const verdict = {
      ...long.verdict,
      message: '1 of 2 replicas are available, and one of them ends again and again',
    };
    expect(textOf({ notes: [], resources: [{ ...long, verdict }] }, { now, paint: plain, ...props })).toBe(
      expected,
    );
  },
);

test('a status of an earlier generation says so, and is not green', () => {
  const ready = { word: 'Ready', reason: 'Available', message: 'Fine', current: false } as const;
  const text = textOf(
    { operators: [], notes: [], resources: [resource({ verdict: ready })] },
    { now, paint: coloured },
  );
  expect(text).toMatch(/^<yellow>AppService shop\/web .*Ready Available, of an earlier generation/);
});

test.each([
  ['2026-01-01T00:59:58Z', '2s'],
  ['2026-01-01T00:58:30Z', '90s'],
  ['2026-01-01T00:55:00Z', '5m'],
  ['2025-12-31T22:00:00Z', '3h'],
  ['2025-12-25T00:00:00Z', '7d'],
  ['2026-01-01T02:00:00Z', '0s'],
  [undefined, ''],
])('%s is %s ago', (time, expected) => {
  expect(age(time, now)).toBe(expected);
});

describe('news', () => {
  const before = linesOf({ operators: [], notes: [], resources: [resource({ events: [event] })] });

  test('are what is said now and was not before, and what has gone', () => {
    const well = resource({
      ...{ events: [event, { ...event, at: '2026-01-01T00:59:59Z', count: 8 }] },
      children: [child('Deployment', { pods: [pod('web-5f-a'), pod('web-5f-b')] })],
    });
    expect(newLines(before, linesOf({ operators: [], notes: ['A note'], resources: [well] }))).toEqual([
      'A note',
      'Deployment shop/web: Ready: is applied',
      'Pod shop/web-5f-b: 1/1 Running',
      'Event of Pod web-5f-b: Warning BackOff (8 times): Back-off restarting failed container',
      'Service shop/web: is gone',
    ]);
  });

  test.each([
    [8, 1],
    [9, 0],
    [15, 0],
    [16, 1],
  ])(
    'has an event that came again for the %ith time %i times: each time twice as many are needed',
    (count, news) => {
      const known = linesOf({
        operators: [],
        notes: [],
        resources: [resource({ events: [{ ...event, count: 8 }] })],
      });
      const again = { ...event, count, at: '2026-01-01T01:00:00Z' };
      const now = linesOf({ operators: [], notes: [], resources: [resource({ events: [again] })] });
      expect(newLines(count === 8 ? before : known, now)).toHaveLength(news);
    },
  );
});

test.each([
  [undefined, 'shop', 'There is no AppService, StreamIngress or JobWatcher in shop'],
  [['JobWatcher'], 'shop', "There is no AppService or StreamIngress in shop; JobWatcher isn't installed"],
  [
    ['StreamIngress', 'JobWatcher'],
    undefined,
    "There is no AppService anywhere; StreamIngress and JobWatcher aren't installed",
  ],
])('where %j are not installed, none in %s is reported in a sentence', (notInstalled, where, sentence) => {
  const kinds = [appService, streamIngress, jobWatcher];
  expect(noneOf({ ...(notInstalled && { notInstalled }) }, kinds, where)).toBe(sentence);
});
