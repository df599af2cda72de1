import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { eventually } from '../support/cluster.js';
import { IngressStage } from '../support/stages.js';
import { numberFrom } from './support/environment.js';
import { KeyWriter, waysToWrite } from './support/key-writers.js';
import { Random } from '../../src/testing/walk.js';

const { apply, forcedApply, merge, replace } = waysToWrite;
const rounds = numberFrom('SCENARIO_WRITER_ROUNDS', 30);
const meanPauseMilliseconds = 400;

/** Each has three keys of its own, and one that a StreamIngress may ask for too. */
function tenWriters({ cluster, nginx: { tcp } }: IngressStage): KeyWriter[] {
  const ways = [apply, apply, forcedApply, forcedApply, merge, merge, merge, replace, replace, replace];
  return ways.map((way, index) => {
    const own = [0, 1, 2].map((digit) => String(7000 + 10 * index + digit));
    return new KeyWriter(cluster, tcp, `writer-${index}`, [...own, String(9000 + index)], way);
  });
}

test('ten writers on a ConfigMap: nothing of theirs is lost, all of ours is there, and the holder of a port is reported', async () => {
  const seed = numberFrom('SCENARIO_SEED', 1);
  await using stage = await IngressStage.start('writers');
  // Half of them are for keys that a writer may take.
  const listens = Array.from({ length: 20 }, (_, index) => 9000 + index);
  await stage.applyKeys({}, 'helm');
  const writers = tenWriters(stage);
  const asked = new Set<number>();

  const comeAndGo = async (random: Random): Promise<void> => {
    const listen = listens[random.below(listens.length)]!;
    if (asked.delete(listen)) await stage.drop(listen);
    else {
      await stage.ask(listen);
      asked.add(listen);
    }
  };
  const repeated = async (act: (random: Random) => Promise<void>, from: number): Promise<void> => {
    const random = new Random(from);
    for (let round = 0; round < rounds; round++) {
      await act(random);
      // The controller waits for quiet, so it has to be given the time to be in the way.
      await delay(random.below(2 * meanPauseMilliseconds));
    }
  };
  await Promise.all([
    ...writers.map((writer, index) => repeated((random) => writer.act(random), seed * 100 + index)),
    repeated(comeAndGo, seed * 100 + 99),
  ]);
  for (const listen of listens)
    if (!asked.has(listen)) {
      await stage.ask(listen);
      asked.add(listen);
    }
  // Of each way to write that can take a key from us, one has one in the end.
  for (const index of [2, 5, 9]) await writers[index]!.take(String(9000 + index));

  const foreign = Object.assign({}, ...writers.map(({ held }) => held)) as Record<string, string>;
  const holderOf = (listen: number) => writers.find(({ held }) => String(listen) in held);
  const open = listens.filter((listen) => !holderOf(listen));
  const taken = listens.filter((listen) => holderOf(listen));
  const refused = writers.map((writer) => writer.refused);
  console.info(
    `seed ${seed}: ${taken.length} ports taken by others, ${refused.join()} writes of theirs refused`,
  );
  await eventually(
    async () => {
      await stage.requireOpen(open, foreign);
      for (const listen of taken) {
        const told = await stage.told(listen);
        expect(told, `p${listen}`).toMatchObject({ status: 'False', reason: 'PortUnavailable' });
        expect(told!.message).toContain(`field manager ${holderOf(listen)!.name};`);
      }
    },
    { intervalMilliseconds: 500 },
  );
  expect(taken.length).toBeGreaterThanOrEqual(3);

  // What they give up is ours.
  for (const listen of taken) await holderOf(listen)!.release(String(listen));
  const left = Object.assign({}, ...writers.map(({ held }) => held)) as Record<string, string>;
  await eventually(() => stage.requireOpen(listens, left), { intervalMilliseconds: 500 });
  stage.logsNoError();
});
