import { expect, test } from 'vitest';
import { configMap, loadBundle } from '../support/bundle.js';
import { configMaps, eventually, services } from '../support/cluster.js';
import { respond, writesTo } from '../support/faults.js';
import { Scenario, small, writesIn } from '../support/stages.js';

const aboutServices = (line: string): boolean => /^[A-Z]+ services\//.test(line);

test.concurrent('a child that is deleted is recreated, once', async () => {
  await using scenario = await Scenario.start({ purpose: 'child-deleted' });
  const { subject, cluster } = scenario;
  await scenario.createReady(small, 'web');
  await scenario.settled();
  const place = subject.childPlace(services, 'web');
  const { metadata: before } = await cluster.get(place);
  const requests = scenario.requestsFromNowOn();

  await cluster.delete(place);

  await eventually(async () => {
    expect((await cluster.get(place)).metadata.uid).not.toBe(before.uid);
  });
  await scenario.endsWell();
  await scenario.settled();
  expect(writesIn(requests()).filter(aboutServices)).toEqual(['PATCH services/web 201']);
});

test.concurrent('when one apply of three fails, nothing is pruned, and the status names it', async () => {
  await using scenario = await Scenario.start({ purpose: 'one-of-three', kind: await loadBundle() });
  const { subject, cluster, proxy } = scenario;
  const parts = (value: string, ...names: string[]) => ({
    objects: names.map((name) => configMap(`box-${name}`, { value })),
  });
  await subject.create('box', parts('1', 'a', 'b', 'c', 'old'));
  await subject.ready('box');
  await scenario.settled();
  const requests = scenario.requestsFromNowOn();
  const rule = proxy.on(writesTo('configmaps', 'box-b'), respond(500));

  await subject.edit('box', parts('2', 'a', 'b', 'c'));

  const told = await subject.condition('box', { type: 'Ready', status: 'False', reason: 'ServerOverloaded' });
  expect(told.message).toContain('box-b');
  expect(told.message).not.toMatch(/box-[ac]/);
  const data = async (name: string): Promise<unknown> =>
    (await cluster.get(subject.childPlace(configMaps, name))).data;
  expect(await data('box-a')).toEqual({ value: '2' });
  expect(await data('box-b')).toEqual({ value: '1' });
  expect(await data('box-c')).toEqual({ value: '2' });
  expect(await data('box-old')).toEqual({ value: '1' });
  expect(writesIn(requests()).filter((line) => line.startsWith('DELETE'))).toEqual([]);
  // Each of the others is written once, however often the third is tried.
  await eventually(() => {
    expect(rule.hits).toBeGreaterThanOrEqual(3);
  });
  for (const name of ['box-a', 'box-c'])
    expect(writesIn(requests()).filter((line) => line.includes(name))).toHaveLength(1);

  rule.remove();
  await eventually(
    async () => {
      expect(await cluster.find(subject.childPlace(configMaps, 'box-old'))).toBeUndefined();
    },
    { deadlineMilliseconds: 150_000 },
  );
  await subject.ready('box');
  await scenario.endsWell();
});
