import { expect, test } from 'vitest';
import { deployments, services } from '../full/support/cluster.js';
import { small } from './support/kinds.js';
import { Scenario } from './support/scenario.js';

/** Judged at once. */
const atOnce = { deadlineMilliseconds: 0 };

test('the question that every scenario ends with finds what is wrong', async () => {
  await using scenario = await Scenario.start({ purpose: 'truth' });
  const { subject, cluster } = scenario;
  const names = ['false-status', 'changed-child', 'missing-child'];
  for (const name of names) await subject.create(name, small);
  for (const name of names) await subject.ready(name);
  await scenario.endsWell();
  // Nobody puts anything right from here on.
  expect(await scenario.controller.stop()).toBe(0);

  const { apiVersion } = subject.kind.type;
  const path = `/apis/${apiVersion}/namespaces/${scenario.namespace}/appservices/false-status/status`;
  const { status } = await cluster.send('PATCH', path, {
    body: { status: { replicas: 7 } },
    contentType: 'application/merge-patch+json',
  });
  expect(status).toBe(200);
  await expect(scenario.endsWell(atOnce)).rejects.toThrow(/The status of false-status/);
  await cluster.merge(subject.childPlace(services, 'changed-child'), { spec: { type: 'ClusterIP' } });
  await expect(scenario.endsWell(atOnce)).rejects.toThrow(/changed-child/);
  await cluster.delete(subject.childPlace(deployments, 'missing-child'));
  await expect(scenario.endsWell(atOnce)).rejects.toThrow(/missing-child/);
  await expect(scenario.endsWell({ ...atOnce, failing: { 'false-status': 'Invalid' } })).rejects.toThrow(
    /false-status: expected/,
  );
});
