import { expect, test } from 'vitest';
import type { AnyObject } from '../../src/contract/object.js';
import { endState, rolledOut, isComplete } from '../../src/testing/sweep/convergence.js';
import type { Clock, Rolling } from '../../src/testing/sweep/convergence.js';
import { Pace } from '../../src/testing/sweep/stand.js';

/** What there is at a moment: pods that are there, those that are asked for, and what the status says. */
interface Moment {
  readonly available: number;
  readonly wanted: number;
  readonly isReconciling: boolean;
  readonly isStuck?: boolean;
}

/** A custom resource with a Deployment; from each of these times on, in milliseconds, it is so. */
function course(moments: Readonly<Record<number, Moment>>, pace = new Pace()) {
  let now = 0;
  const at = (): Moment =>
    Object.entries(moments).reduce(
      (latest, [time, moment]) => (Number(time) <= now ? moment : latest),
      moments[0]!,
    );
  const clock: Clock = {
    now: () => now,
    wait: (milliseconds) => {
      now += milliseconds;
      return Promise.resolve();
    },
  };
  const trial: Rolling = {
    pace,
    // Quiet is waited for.
    settled: () => clock.wait(400) as Promise<never>,
    isAlive: () => true,
    objects: () => Promise.resolve([deployment(at())]),
    pods: () => Promise.resolve([]),
    state: () => Promise.resolve({ '<readiness>': { Reconciling: at().isReconciling ? 'True' : 'False' } }),
  };
  return { clock, trial };
}

function deployment({ available, wanted, isStuck = false }: Moment): AnyObject {
  const counts = { replicas: wanted, updatedReplicas: wanted, availableReplicas: available };
  const conditions = isStuck ? [{ type: 'ReplicaFailure', status: 'True', reason: 'FailedCreate' }] : [];
  return {
    ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web', generation: 1 } },
    spec: { replicas: wanted },
    status: { observedGeneration: 1, ...counts, unavailableReplicas: wanted - available, conditions },
  };
}

const reconciling = { '<readiness>': { Reconciling: 'True' } };
const available = { '<readiness>': { Reconciling: 'False' } };

test('pods that an autoscaler asks for when all seems to be over are waited for', async () => {
  // It asks for them after the pods were looked at, and before the state is.
  const { clock, trial } = course({
    0: { available: 1, wanted: 1, isReconciling: false },
    401: { available: 1, wanted: 2, isReconciling: true },
    2_000: { available: 2, wanted: 2, isReconciling: true },
    3_000: { available: 2, wanted: 2, isReconciling: false },
  });

  expect(await endState(trial, clock)).toEqual(available);
  expect(clock.now()).toBeLessThan(6_000);
});

test('what waits for somebody, although everything is there, is taken as it is after a moment', async () => {
  const { clock, trial } = course({ 0: { available: 1, wanted: 1, isReconciling: true } });

  expect(await endState(trial, clock)).toEqual(reconciling);
  expect(clock.now()).toBeLessThan(6_000);
});

test('on a busy machine that moment is longer', async () => {
  const pace = new Pace();
  pace.started(1_000);
  const { clock, trial } = course(
    {
      0: { available: 1, wanted: 1, isReconciling: true },
      9_000: { available: 1, wanted: 1, isReconciling: false },
    },
    pace,
  );

  expect(await endState(trial, clock)).toEqual(available);
});

test('pods that the cluster says it cannot make are not waited for', async () => {
  const { clock, trial } = course({ 0: { available: 0, wanted: 1, isReconciling: true, isStuck: true } });

  expect(await endState(trial, clock)).toEqual(reconciling);
  expect(clock.now()).toBeLessThan(8_000);
});

test('pods that never come are given up', async () => {
  const { clock, trial } = course({ 0: { available: 0, wanted: 1, isReconciling: true } });

  expect(await rolledOut(trial, undefined, clock)).toEqual({ ended: 'incomplete', hasWaited: true });
  expect(clock.now()).toBeLessThan(92_000);
});

test('an autoscaler is waited for until its controller has looked at what it scales', () => {
  const autoscaler = {
    ...{ apiVersion: 'autoscaling/v2', kind: 'HorizontalPodAutoscaler', metadata: { name: 'web' } },
    spec: { minReplicas: 2 },
  };
  const seen = { conditions: [{ type: 'AbleToScale', status: 'True', reason: 'SucceededRescale' }] };

  expect(isComplete(autoscaler)).toBe(false);
  expect(isComplete({ ...autoscaler, status: { currentReplicas: 1 } })).toBe(false);
  expect(isComplete({ ...autoscaler, status: seen })).toBe(true);
  expect(isComplete({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'web' } })).toBe(true);
});
