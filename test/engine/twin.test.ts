import { describe, expect, it } from 'vitest';
import type { ApplyStep } from '../../src/contract/controller.js';
import { carryOut } from '../../src/engine/carry-out.js';
import type { ApiResponse } from '../../src/engine/transport.js';
import { newBench, plan } from './support/bench.js';
import { CONFIG_MAP, configMap, failure, fieldConflict, MANAGER, ownedBy } from './support/builders.js';
import { FakeApiServer } from './support/fake-api-server.js';

const OWNER = ownedBy('web');
const TWIN = { ...ownedBy('web', 'uid-twin'), apiVersion: 'other.example.com/v1' };
const NEVER = new AbortController().signal;

function step(name: string, data = '1'): ApplyStep {
  const metadata = { name, namespace: 'shop' };
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { value: data } };
  return { object, fieldManager: MANAGER, owner: OWNER };
}

function setup() {
  const bench = newBench(new FakeApiServer());
  const { server, reader, tools } = bench;
  const put = (name: string, owner = TWIN) =>
    server.put(CONFIG_MAP, configMap(name, '1', { ownerReferences: [owner] }));
  return {
    ...bench,
    put,
    known: (name: string, owner = TWIN) => {
      reader.store(CONFIG_MAP).observed(put(name, owner));
    },
    run: async (...apply: readonly ApplyStep[]) => {
      const { changes } = await carryOut(plan({ apply }), reader, tools, NEVER);
      return changes.map(({ action, error }) => error?.reason ?? action);
    },
  };
}

const immutable = failure(422, 'Invalid', 'spec.selector: field is immutable', {
  causes: [
    { reason: 'FieldValueInvalid', message: 'Invalid value: {}: field is immutable', field: 'spec.selector' },
  ],
});
const secondController = failure(
  422,
  'Invalid',
  'Deployment.apps "web" is invalid: metadata.ownerReferences',
  {
    causes: [
      {
        reason: 'FieldValueInvalid',
        message:
          'Invalid value: [{"kind":"Widget"}]: Only one reference can have Controller set to true. Found "true" in references for Widget/web and Widget/web',
        field: 'metadata.ownerReferences',
      },
    ],
  },
);

describe('a plan of which an object belongs to one of the same kind and name in another group', () => {
  it('makes nothing, not even what comes before that object', async () => {
    const { run, known, server } = setup();
    known('b');

    expect(await run(step('a'), step('b'), step('c'))).toEqual(['skipped', 'OwnershipConflict', 'skipped']);
    expect(server.requests).toEqual([]);
  });

  it.each<[what: string, answer: ApiResponse]>([
    ['a field that differs', fieldConflict()],
    ['a field that can not be changed', immutable],
    ['an owner reference too many', secondController],
  ])('makes nothing more once %s shows that the other was faster', async (_, answer) => {
    const { run, put, server } = setup();
    server.intercept = ({ method }) => {
      if (method !== 'PATCH') return undefined;
      put('a');
      return answer;
    };

    expect(await run(step('a'), step('b'))).toEqual(['OwnershipConflict', 'skipped']);
    expect(server.requests.map(({ method, path }) => [method, path.split('/').at(-1)])).toEqual([
      ['PATCH', 'a'],
      ['GET', 'a'],
    ]);
    expect(server.get(CONFIG_MAP, 'shop/a')?.metadata.ownerReferences).toEqual([TWIN]);
  });

  it('still puts right what is its own', async () => {
    const { run, known, server } = setup();
    known('a', OWNER);
    known('b');

    expect(await run(step('a'), step('b'), step('c'))).toEqual([
      'configured',
      'OwnershipConflict',
      'skipped',
    ]);
    expect(server.writes).toHaveLength(1);
  });
});
