import { describe, expect, it } from 'vitest';
import type { Change } from '../../src/contract/change.js';
import { OperatorError } from '../../src/contract/error.js';
import { refOf } from '../../src/contract/object.js';
import type { OwnerReference } from '../../src/contract/object.js';
import type { EventProps, OwnStep, Step } from '../../src/contract/plan.js';
import type { ApiRequest, ApiResponse } from '../../src/client/transport.js';
import { handlersOf, interpret } from '../../src/engine/plan/interpret.js';
import type { PlanOutcome, StatusPolicy } from '../../src/engine/plan/interpret.js';
import { own } from '../../src/engine/steps/own.js';
import { newBench, plan } from './support/bench.js';
import {
  apply,
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

const EVENT: EventProps = { type: 'Warning', reason: 'Why', action: 'Reconcile', note: 'note' };
const REGARDING = { ...refOf(widget('web')), uid: 'uid-web' };

/** Outcome of an object that isn't asked of the server. */
type Fixed = Pick<Change, 'action' | 'error' | 'skippedFor' | 'waitsFor'>;

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
  /** @default - one that differs */
  readonly status?: object;
  readonly signal?: AbortSignal;
}

const nested = (levels: number): object => (levels === 0 ? {} : { a: nested(levels - 1) });

const BUSY: StatusPolicy = { mayDeferStatus: () => true, isTransient: () => false };

const NO = failure(422, 'Invalid', 'no');

function begin({ steps, answers = {}, fixed = {}, present, waits = {}, ...rest }: Scenario) {
  const bench = newBench(new FakeApiServer());
  const { server, reader, hand } = bench;
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
  const handlers = new Map(handlersOf());
  handlers.set('own', {
    ...own,
    carryOut: async (step, ...more) => {
      const change = fixed[step.object.metadata.name];
      return change ? { ref: refOf(step.object), ...change } : own.carryOut(step as OwnStep, ...more);
    },
  });
  const stepOf = (word: string, name: string): Step[] => {
    const waitsFor = waits[name] === undefined ? {} : { waitsFor: [child(waits[name])] };
    const by = { object: child(name), fieldManager: MANAGER };
    if (word === '|') return [{ do: 'barrier' }];
    if (word === 'own') return [{ do: 'own', ...by, owner: ownedBy('web'), ...waitsFor }];
    if (word === 'handOver') return [{ do: 'handOver', ...by, fieldManager: 'other' }];
    return word === 'prune' ? [{ do: 'prune', object: live.get(name) ?? child(name) }] : [];
  };
  const { error, events = [EVENT], signal = hand.signal, policy = true, status = { replicas: 1 } } = rest;
  const work = plan({
    steps: words.flatMap((word, index) => stepOf(word, words[index + 1] ?? '')),
    status: [{ target, fieldManager: STATUS_MANAGER, status }],
    events: events.map((event) => ({ regarding: REGARDING, event })),
    ...(error && { error }),
  });
  return { ...bench, carrying: interpret(work, { ...hand, signal }, handlers, { status: policy }) };
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
      'deleted failed created configured',
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
      { steps: 'own a own b own c | prune old', waits: { b: 'missing' } },
      'created skipped created skipped configured',
    ],
    [
      'what waited is applied once that is ready',
      { steps: 'own a own b | prune old', waits: { b: 'a' } },
      'created created deleted configured',
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
      'what has changed under a step holds back, since it is looked at again',
      { steps: 'own a | prune old', fixed: { a: { action: 'skipped', skippedFor: 'changed' } } },
      'skipped skipped configured',
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
    ['in a burst, a status that is behind is left', { steps: 'own a', events: [], policy: BUSY }, 'created'],
    [
      'in a burst, a status with an event is written: the event would be sent with each try',
      { steps: 'own a', policy: BUSY },
      'created configured',
    ],
    [
      'in a burst, a status that is nested too deeply fails, and nothing throws',
      { steps: 'own a', events: [], status: nested(300), policy: BUSY },
      'created failed',
    ],
    [
      'in a burst, a failure is reported',
      { steps: 'own a', answers: { a: NO }, events: [], policy: BUSY },
      'failed configured',
    ],
    [
      'in a burst, a correction is reported: no later pass knows of it',
      { steps: 'own a', fixed: { a: { action: 'corrected' } }, events: [], policy: BUSY },
      'corrected configured',
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

  it('creates nothing beside an object of a namesake of another group: of two at once, one has all, the other none', async () => {
    const { server, reader, hand } = newBench(new FakeApiServer());
    const namesake = { ...ownedBy('web', 'uid-twin'), apiVersion: 'other.example.com/v1' };
    const found = (name: string, owner: OwnerReference): void => {
      reader
        .store(CONFIG_MAP)
        .observed(server.put(CONFIG_MAP, configMap(name, '1', { ownerReferences: [owner] })));
    };
    found('a', namesake);
    found('c', ownedBy('web'));
    const outcome = await interpret(
      plan({ steps: ['a', 'b', 'c'].map((name) => apply(name)) }),
      hand,
      handlersOf(),
    );
    expect(actionsOf(outcome)).toBe('failed skipped configured');
    expect(outcome.changes[0]?.error?.reason).toBe('OwnershipConflict');
  });

  it('reports a conclusion that throws as a bug of the kind, and what was changed', async () => {
    const { hand } = newBench(new FakeApiServer());
    const conclude = (): never => {
      throw new TypeError('no conditions');
    };
    const outcome = await interpret(plan({ conclude }), hand, handlersOf());
    expect(outcome.error).toMatchObject({ isBug: true, cause: expect.any(TypeError) as TypeError });
  });

  it('refuses a handler that can not say what it would do', () => {
    const handler = { do: 'x/y', carryOut: () => Promise.reject(new Error('never called')) } as const;
    expect(() => handlersOf([handler])).toThrow('the handler of x/y needs a preview');
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
