import { expect, inject, test } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import { startSandbox } from '../../sandbox/control-plane.js';
import type { Kind } from '../../src/contract/kind.js';
import { resourceType } from '../../src/contract/resource.js';
import { Cluster } from '../../src/testing/cluster.js';
import { eventually } from '../../src/testing/eventually.js';
import { formatReport, sweep } from '../../src/testing/sweep.js';
import type { CheckName } from '../../src/testing/sweep.js';
import { plantedSamples } from './planted/crd.js';
import * as faults from './planted/faults.js';
import { sound } from './planted/sound.js';

const sandbox = openSandbox(inject('sandbox'));

const found: readonly (readonly [fault: string, kind: Kind, check: CheckName, message: RegExp])[] = [
  [
    'an undeclared child kind',
    faults.undeclared,
    'rendering',
    /add \{ apiVersion: 'v1', kind: 'ConfigMap' \}/,
  ],
  ['a timestamp in the render', faults.timestamp, 'rendering', /at \.data\.rendered, and the next time with/],
  [
    'a timestamp in what a later sample alone renders',
    faults.laterTimestamp,
    'rendering',
    /^rendered on another day, .*data\.rendered is "\d{4}-\d\d-\d\d" instead of/,
  ],
  ['a list without keys', faults.unkeyed, 'list keys', /^spec\.parts is a list of objects without keys/],
  ['a name that collides for two custom resources', faults.colliding, 'collisions', /ConfigMap .*parts/],
  ['a child without an owner', faults.orphaning, 'ownership', /ConfigMap .*-parts isn't owned/],
  ['a status that lies', faults.lying, 'status', /Ready is True .* while Deployment .* isn't ready/],
  [
    'a status that is never ready',
    faults.waiting,
    'status',
    /Ready is Unknown \(Waiting: Something is missing\), while nothing is done any more/,
  ],
  ['a child that is always refused', faults.refused, 'status', /Stalled is True \(.*spec\.ports\[0\]\.port/],
  ['a child that depends on the order of events', faults.ordered, 'kills', /-parts\.data\.order/],
  [
    'a write after each restart',
    faults.counting,
    'settling',
    /^settled, and after a restart it writes PATCH configmaps\/\S+-parts; ConfigMap \S+-parts: data\.started is "\d+" instead of "\d+": the render differs from the last one$/,
  ],
  [
    'a field remembered from an earlier spec',
    faults.remembered,
    'walk',
    /^ConfigMap <name>\.data is \{"color":"red"\} instead of absent/,
  ],
];

test.each(found)('%s is found', async (_fault, kind, check, message) => {
  const { apiVersion, kind: kindName } = kind.type;
  const samples = plantedSamples.map((sample) => ({ ...sample, apiVersion, kind: kindName }));

  const report = await sweep(kind, samples, { sandbox, checks: [check], seed: 7 });

  expect(report.held).toBe(false);
  expect(report.checks[0]?.failures[0]?.what, formatReport(report)).toMatch(message);
  expect(report.checks[0]?.failures[0]?.sequence).not.toEqual([]);
});

test('of a sound kind, nothing is reported', async () => {
  const report = await sweep(sound, plantedSamples, { sandbox, seed: 7 });

  console.log(formatReport(report));
  expect(report.held, formatReport(report)).toBe(true);
});

test('in a sandbox that runs on, no right and no namespace of a sweep stays', async () => {
  // Of its own, since other files have theirs in the shared one.
  await using own = await startSandbox();
  await own.kubectl(['apply', '--server-side', '-f', '-'], { stdin: JSON.stringify(sound.crd) });
  // Its garbage collector would learn of the kind half a minute later.
  await own.restartControllerManager();
  const cluster = new Cluster(own);
  const before = await clusterWide(cluster);

  const report = await sweep(sound, plantedSamples, { sandbox: own, checks: ['settling', 'walk'], seed: 7 });

  expect(report.held, formatReport(report)).toBe(true);
  // The API server empties a namespace before it goes.
  await eventually(async () => {
    expect(await clusterWide(cluster)).toEqual(before);
  });
  await cluster.close();
});

/** Everything that gives rights in the whole cluster, and every namespace. */
async function clusterWide(cluster: Cluster): Promise<string[]> {
  const rbac = 'rbac.authorization.k8s.io/v1';
  const types = [
    { apiVersion: rbac, kind: 'ClusterRole' },
    { apiVersion: rbac, kind: 'ClusterRoleBinding' },
    { apiVersion: 'v1', kind: 'Namespace' },
  ].map((type) => resourceType({ ...type, namespaced: false }));
  const all = await Promise.all(
    types.map(async (type) =>
      (await cluster.list(type, '')).map(({ metadata }) => `${type.kind} ${metadata.name}`),
    ),
  );
  return all.flat().toSorted();
}
