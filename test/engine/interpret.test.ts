import { describe, expect, it, vi } from 'vitest';
import type { Change } from '../../src/contract/change.js';
import type { ApplyStep, EventProps, Plan } from '../../src/contract/controller.js';
import { OperatorError } from '../../src/contract/error.js';
import { refOf } from '../../src/contract/object.js';
import type { ApiRequest, ApiResponse } from '../../src/client/transport.js';
import { carryOut } from '../../src/engine/plan/carry-out.js';
import type { PlanOutcome, StatusPolicy } from '../../src/engine/plan/carry-out.js';
import { newBench } from './support/bench.js';
import {
  child,
  CONFIG_MAP,
  configMap,
  failure,
  MANAGER,
  ownedBy,
  STATUS_MANAGER,
  widget,
  WIDGET,
} from './support/builders.js';
import { FakeApiServer } from './support/fake-api-server.js';
import { settled } from './support/virtual-clock.js';

const NEVER = new AbortController().signal;
const EVENT: EventProps = { type: 'Warning', reason: 'Why', action: 'Reconcile', note: 'note' };
const REGARDING = { ...refOf(widget('web')), uid: 'uid-web' };

/** Outcome of an object that isn't asked of the server. */
type Fixed = Pick<Change, 'action' | 'error' | 'waitsFor'>;

interface Scenario {
  /** Words: `own NAME`, `handOver NAME`, `prune NAME` of a ConfigMap, and `|` for a barrier. */
  readonly steps: string;
  /** Answers by the name of the ConfigMap, or to `status`. @default - the server's own */
  readonly answers?: Readonly<Record<string, ApiResponse | 'none'>>;
  /** @default - what the server says */
  readonly fixed?: Readonly<Record<string, Fixed>>;
  /** ConfigMaps that are there before, owned by the Widget. @default - those that are pruned */
  readonly present?: readonly string[];
  /** What waits for what. @default - nothing waits */
  readonly waits?: Readonly<Record<string, string>>;
  readonly policy?: StatusPolicy;
  readonly error?: OperatorError;
  readonly events?: readonly EventProps[];
  readonly signal?: AbortSignal;
}

const NO = failure(422, 'Invalid', 'no');

function begin({ steps, answers = {}, fixed = {}, present, waits = {}, ...rest }: Scenario) {
  const bench = newBench(new FakeApiServer());
  const { server, reader, tools } = bench;
  const target = widget('web');
  reader.store(WIDGET).observed(server.put(WIDGET, target));
  const words = steps.split(' ').filter((word) => word !== '');
  const names = words.flatMap((word, index) => (words[index - 1] === 'prune' ? [word] : []));
  const observe = (name: string) => {
    const live = server.put(CONFIG_MAP, configMap(name, '1', { ownerReferences: [ownedBy('web')] }));
    reader.store(CONFIG_MAP).observed(live);
    return live;
  };
  const live = new Map((present ?? names).map((name) => [name, observe(name)]));
  server.intercept = ({ path, method }: ApiRequest) => {
    const name = path.endsWith('/status') ? 'status' : (path.split('/').at(-1) ?? '');
    const answer = method === 'GET' ? undefined : answers[name];
    return answer === 'none' ? Promise.reject(new Error('headers timeout')) : answer;
  };
  const real = tools.applier.apply.bind(tools.applier);
  vi.spyOn(tools.applier, 'apply').mockImplementation(async (step, from) => {
    const change = fixed[step.object.metadata.name];
    return change ? { ref: refOf(step.object), ...change } : real(step, from);
  });
  const apply: ApplyStep[] = [];
  const pruned: Plan['delete'][number][] = [];
  for (const [index, word] of words.entries()) {
    const name = words[index + 1] ?? '';
    const known = live.get(waits[name] ?? '');
    const wait = { readiness: { phase: 'progressing', reason: 'NotReady', message: 'not yet' } } as const;
    const waitsFor = known && { waitsFor: () => ({ ...wait, ref: refOf(known) }) };
    if (word === 'own') apply.push({ object: child(name), fieldManager: MANAGER, owner: ownedBy('web'), ...waitsFor });
    if (word === 'handOver') apply.push({ object: child(name), fieldManager: 'other', handOver: true });
    if (word === 'prune') pruned.push({ object: live.get(name) ?? child(name) });
  }
  const events = rest.events ?? [EVENT];
  const plan: Plan = {
    ...{ apply, delete: pruned },
    ...(words[0] === 'prune' && { deleteFirst: true }),
    status: [{ target, fieldManager: STATUS_MANAGER, status: () => ({ replicas: 1 }) }],
    events: events.map((event) => ({ regarding: REGARDING, event: () => event })),
    ...(rest.error && { error: rest.error }),
  };
  return { ...bench, carrying: carryOut(plan, reader, tools, rest.signal ?? NEVER, rest.policy) };
}

const actionsOf = ({ changes, statusChanges }: PlanOutcome): string =>
  [...changes, ...statusChanges].map(({ action }) => action).join(' ');

const written = (server: FakeApiServer): string =>
  server.writes
    .map((write) => write.replace(/^(\w+) .*\/(namespaces\/shop\/|v1\/)/, '$1 ').replace(/PATCH /, ''))
    .join(', ');

const contested = new OperatorError({ reason: 'FieldContested', message: 'fights', retry: 'backoff' });
const CONTESTED: Fixed = { action: 'failed', error: contested };

describe('interpret', () => {
  it.each<[rule: string, scenario: Scenario, actions: string, writes?: string]>([
    [
      'steps come in their order, then the status, then events',
      { steps: 'own a own b | prune old' },
      'created created deleted configured',
      'configmaps/a, configmaps/b, DELETE configmaps/old, widgets/web/status, POST events',
    ],
    [
      'a failed step holds back what is behind a barrier, and nothing else',
      { steps: 'own a own b | prune old', answers: { a: NO } },
      'failed created skipped configured',
      'configmaps/a, configmaps/b, widgets/web/status, POST events',
    ],
    [
      'without a barrier nothing is held back',
      { steps: 'prune old own a own b', answers: { a: NO } },
      'failed created deleted configured',
    ],
    [
      'a deletion that fails keeps no other from being tried',
      { steps: 'own a | prune old prune older', answers: { old: failure(403, 'Forbidden', 'no') } },
      'created failed deleted configured',
    ],
    [
      'a failed hand-over holds back the steps of the same object, and no others',
      { steps: 'handOver a own a own b | prune old', present: ['a', 'old'], answers: { a: NO } },
      'failed skipped created skipped configured',
      'configmaps/a, configmaps/b, widgets/web/status, POST events',
    ],
    [
      'one request without an answer stops nothing, and the status says so',
      { steps: 'own a own b | prune old', answers: { a: 'none' } },
      'failed created skipped configured',
    ],
    [
      'where none is answered, no event is sent that the status would have to remember',
      { steps: 'own a | prune old', answers: { a: 'none', status: 'none' } },
      'failed skipped failed',
      'configmaps/a, widgets/web/status',
    ],
    [
      'what waits is left as it is, and holds deletions back without being a failure',
      { steps: 'own a own b own c | prune old', present: ['a', 'old'], waits: { b: 'a' } },
      'configured skipped created skipped configured',
    ],
    [
      'a contested field of what stays holds nothing back',
      { steps: 'own a | prune old', present: ['a', 'old'], fixed: { a: CONTESTED } },
      'failed deleted configured',
    ],
    [
      'a contested creation holds back, since what takes the place of the others is missing',
      { steps: 'own a | prune old', fixed: { a: CONTESTED } },
      'failed skipped configured',
    ],
    [
      'a failure that passes is not reported: neither status nor events',
      {
        steps: 'own a own b | prune old',
        answers: { a: failure(429, 'TooManyRequests', 'later') },
        policy: { mayDeferStatus: () => false, isTransient: () => true },
      },
      'failed created skipped',
      'configmaps/a, configmaps/b',
    ],
    [
      'in a burst, a status that is behind is left',
      { steps: 'own a', events: [], policy: { mayDeferStatus: () => true, isTransient: () => false } },
      'created',
    ],
    [
      'in a burst, a status with an event is written: the event would be sent with each try',
      { steps: 'own a', policy: { mayDeferStatus: () => true, isTransient: () => false } },
      'created configured',
    ],
    [
      'in a burst, a failure is reported',
      {
        ...{ steps: 'own a', answers: { a: NO }, events: [] },
        policy: { mayDeferStatus: () => true, isTransient: () => false },
      },
      'failed configured',
    ],
    [
      'in a burst, the error of the plan itself is reported',
      {
        ...{ steps: 'own a', events: [], error: contested },
        policy: { mayDeferStatus: () => true, isTransient: () => true },
      },
      'created configured',
    ],
  ])('%s', async (_, scenario, actions, writes) => {
    const { carrying, server } = begin(scenario);
    const outcome = await carrying;
    expect(actionsOf(outcome)).toBe(actions);
    if (writes !== undefined) expect(written(server)).toBe(writes);
  });

  it('prunes a hundred objects, and leaves the others to the next pass', async () => {
    const names = Array.from({ length: 102 }, (_, index) => `old-${index}`);
    const { carrying } = begin({ steps: `own a | ${names.map((name) => `prune ${name}`).join(' ')}` });
    const { changes } = await carrying;
    expect(changes.filter(({ action }) => action === 'deleted')).toHaveLength(100);
    expect(changes.slice(-2).map(({ skippedFor }) => skippedFor)).toEqual(['paced', 'paced']);
  });

  it('given up, stops waiting for the step that is under way, which goes on, and begins no other', async () => {
    const abort = new AbortController();
    const late = new OperatorError({ reason: 'ReconcileTimeout', message: 'too long', retry: 'backoff' });
    const { server, reader, carrying } = begin({ steps: 'own a own b | prune old', signal: abort.signal });
    const answer = Promise.withResolvers<undefined>();
    server.intercept = () => answer.promise;
    await settled();
    abort.abort(late);
    const outcome = await carrying;
    expect(actionsOf(outcome)).toBe('failed skipped skipped skipped');
    expect(outcome.givenUp).toBe(late);
    let ended = false;
    void outcome.pending?.then(() => (ended = true));
    await settled();
    expect(ended).toBe(false);
    answer.resolve(undefined);
    await settled();
    expect(ended).toBe(true);
    expect(server.writes).toHaveLength(1);
    expect(reader.get(CONFIG_MAP, 'shop/a')).toBeDefined();
  });
});
