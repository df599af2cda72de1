import { expect, test } from 'vitest';
import type { AnyObject } from '../../src/contract/object.js';
import { driftOne, NotBack } from '../../src/testing/sweep/drift.js';
import type { Drifted } from '../../src/testing/sweep/drift.js';

const object: AnyObject = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'settings' } };

/** A field that somebody sets to another value, and what comes of that. */
function fieldThat(isBack: () => Promise<boolean>): Drifted {
  return {
    ...{ description: 'ConfigMap: data.color', place: 'data.color of ConfigMap settings' },
    ...{ in: () => 'red', object: () => Promise.resolve(object), put: () => Promise.resolve(true) },
    ...{ isBack, requireBack: () => Promise.resolve() },
  };
}

test('a field that stays as somebody has set it is not put right', async () => {
  const field = fieldThat(() => Promise.reject(new NotBack('it is as somebody has set it')));

  expect(await driftOne(field)).toEqual({
    what: "ConfigMap: data.color isn't put right",
    step: 'somebody sets data.color of ConfigMap settings to "red-x"',
  });
});

test('an API server that is out of reach is told as that', async () => {
  const field = fieldThat(() => Promise.reject(new Error('connect ECONNREFUSED')));

  expect(await driftOne(field)).toEqual({
    what: 'connect ECONNREFUSED',
    step: 'somebody sets data.color of ConfigMap settings to "red-x"',
  });
});
