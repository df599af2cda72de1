import { onTestFinished } from 'vitest';
import type { Controller, Watch } from '../../../src/contract/controller.js';
import type { Plan } from '../../../src/contract/plan.js';
import { controllerOf } from '../../../src/contract/object.js';
import type { AnyObject } from '../../../src/contract/object.js';
import { Runner } from '../../../src/engine/loop/runner.js';
import type { RunnerProps } from '../../../src/engine/loop/runner.js';
import type { Logger } from '../../../src/telemetry/logger.js';
import { Metrics } from '../../../src/telemetry/metrics.js';
import { newBench, plan } from './bench.js';
import type { Bench } from './bench.js';
import { CONFIG_MAP, WIDGET } from './builders.js';
import { FakeApiServer } from './fake-api-server.js';
import { settled } from './virtual-clock.js';

export const WATCHES: readonly Watch[] = [
  { type: WIDGET, keep: (object) => object, mapsTo: ({ metadata }) => [`shop/${metadata.name}`] },
  {
    type: CONFIG_MAP,
    mapsTo: (object) => {
      const owner = controllerOf(object);
      return owner ? [`shop/${owner.name}`] : [];
    },
  },
];

export interface StartedRunner extends Bench {
  readonly metrics: Metrics;
  /** Keys, in the order in which they were reconciled. */
  readonly reconciled: string[];
  readonly runner: Runner;
  readonly stop: () => Promise<void>;
  /** Puts an object on the server and lets the watch deliver it. */
  readonly deliver: (object: AnyObject) => Promise<void>;
}

export function startedRunner(
  reconcile: (key: string, count: number) => Plan = () => plan({}),
  workers = 2,
  watches = WATCHES,
  { log, ...more }: Partial<RunnerProps> & { readonly log?: Logger } = {},
  controller: Partial<Controller> = {},
): StartedRunner {
  const bench = newBench(new FakeApiServer(), watches);
  const { stores, hand, server, reader } = bench;
  const metrics = new Metrics();
  const reconciled: string[] = [];
  const runner = new Runner({
    controller: {
      name: 'widget',
      kind: 'Widget',
      watches,
      reconcile: (key) => {
        reconciled.push(key);
        return reconcile(key, reconciled.length);
      },
      ...controller,
    },
    stores,
    hand: { ...hand, metrics, ...(log && { log }) },
    random: () => 0,
    workers,
    lookups: {
      reflector: () => {
        throw new Error('nothing is looked up here');
      },
      count: () => Promise.resolve(Infinity),
    },
    ...more,
  });
  const running = runner.run();
  const stop = async (): Promise<void> => {
    runner.stop();
    await running;
  };
  onTestFinished(stop);
  const deliver = async (object: AnyObject): Promise<void> => {
    const type = object.kind === 'Widget' ? WIDGET : CONFIG_MAP;
    reader.store(type).observed(server.put(type, object));
    await settled();
  };
  return { ...bench, metrics, reconciled, runner, stop, deliver };
}

export const count = async (metrics: Metrics, pattern: RegExp): Promise<number> =>
  Number(pattern.exec(await metrics.scrape())?.[1] ?? Number.NaN);
