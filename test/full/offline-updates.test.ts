import { Construct } from 'constructs';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import type { CustomResourceDefinition } from '../../src/contract/crd.js';
import type { AnyObject } from '../../src/contract/object.js';
import { resourceType } from '../../src/contract/resource.js';
import { defineKind } from '../../src/contract/define-kind.js';
import { judge, KnownKinds } from '../../src/synth/custom-resource.js';
import { shiftCrd, withoutBounds } from '../synth/support/shift-crd.js';
import { befores, updates } from '../synth/support/updates.js';
import type { Before, Update } from '../synth/support/updates.js';
import { Cluster, collection } from './support/cluster.js';
import { eventually } from './support/eventually.js';
import { differences } from './support/verdicts.js';
import type { Judged } from './support/verdicts.js';

const cluster = new Cluster(openSandbox(inject('sandbox')));
const shifts = resourceType({ apiVersion: 'judge.example.com/v1', kind: 'Shift' });
const schema = shiftCrd.spec.versions[0]!.schema.openAPIV3Schema;
const objects = befores(schema, 60, 11);
const live = new Map<string, AnyObject>();
let path: string;

/** Objects are made while everything is allowed; then come bounds and rules. */
beforeAll(async () => {
  path = collection(shifts, await cluster.makeNamespace('updates'));
  await install(withoutBounds(shiftCrd));
  await eventually(() => answered('GET', path, undefined, [200]));
  await inParallel(objects, make);
  await install(shiftCrd);
  const wrong = objectOf('wrong', { fixed: 'named' });
  await eventually(() => answered('POST', path, wrong, [422]));
});
afterAll(() => cluster.close());

async function install(crd: CustomResourceDefinition): Promise<void> {
  const type = resourceType({
    ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', namespaced: false },
  });
  const place = { type, name: crd.metadata.name };
  if (await cluster.find(place)) await cluster.replaceSpec(place, crd.spec);
  else await cluster.create(type, crd as unknown as AnyObject);
}

function objectOf(name: string, spec: object): AnyObject {
  return { apiVersion: shifts.apiVersion, kind: shifts.kind, metadata: { name }, spec };
}

async function answered(
  method: 'GET' | 'POST' | 'PATCH',
  at: string,
  body: object | undefined,
  expected: readonly number[],
): Promise<AnyObject> {
  const contentType = method === 'PATCH' ? { contentType: 'application/merge-patch+json' } : {};
  const answer = await cluster.send(method, at, { ...(body && { body }), ...contentType });
  expect(expected, JSON.stringify(answer.body)).toContain(answer.status);
  return answer.body;
}

/** Every other one has a status, right or wrong. */
async function make({ name, spec }: Before, index: number): Promise<void> {
  await answered('POST', path, objectOf(name, spec), [201]);
  const at = `${path}/${name}`;
  if (index % 2 > 0) await answered('PATCH', `${at}/status`, { status: { ready: index % 7 } }, [200]);
}

test(
  'an update has the same verdict offline and online, and the same paths',
  { timeout: 300_000 },
  async () => {
    await inParallel(objects, async ({ name }) => {
      live.set(name, await answered('GET', `${path}/${name}`, undefined, [200]));
    });
    const kind = defineKind({ crd: shiftCrd, construct: Construct, children: [] });
    const version = new KnownKinds([kind]).find(shifts);
    if (!('kind' in version)) throw new Error(version.message);
    const cases = updates(schema, objects, 23);

    const judged = await inParallel(cases, async ({ name, before, spec }: Update): Promise<Judged> => {
      const old = live.get(before.name)!;
      const object = { ...old, status: { ready: 0 }, spec };
      const query = { dryRun: 'All', fieldValidation: 'Strict' };
      const answer = await cluster.send('PUT', `${path}/${before.name}`, { body: object, query });
      return { name, object: spec, answer, problems: judge(version, version.withDefaults(object), old) };
    });

    const accepted = judged.filter(({ answer }) => answer.status === 200).length;
    console.log(`${cases.length} updates of ${objects.length} objects, ${accepted} of them accepted`);
    expect(cases.length).toBeGreaterThanOrEqual(1_000);
    expect(accepted).toBeGreaterThan(200);
    expect(judged.flatMap(differences)).toEqual([]);
  },
);

async function inParallel<T, R>(
  items: readonly T[],
  work: (item: T, index: number) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  for (let at = 0; at < items.length; at += 32)
    results.push(...(await Promise.all(items.slice(at, at + 32).map((item, n) => work(item, at + n)))));
  return results;
}
