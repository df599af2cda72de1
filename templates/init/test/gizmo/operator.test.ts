import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Condition } from 'cdk8s-reconstruct';
import { eventually, readSamples, withSandbox } from 'cdk8s-reconstruct/testing';
import { kind } from '../../src/gizmo/kind.ts';

const [sample] = await readSamples(kind, new URL('../../samples/gizmo.yaml', import.meta.url));

test('the operator makes the sample ready', () =>
  withSandbox({ kinds: [kind] }, async ({ cluster, makeNamespace, run }) => {
    const namespace = await makeNamespace('test');
    await run([kind]);

    await cluster.create(kind.type, { ...sample, metadata: { ...sample.metadata, namespace } });

    const place = { type: kind.type, namespace, name: sample.metadata.name };
    await eventually(async () => {
      const { status } = await cluster.get<{ status?: { conditions?: Condition[] } }>(place);
      const ready = status?.conditions?.find(({ type }) => type === 'Ready');
      assert.equal(ready?.status, 'True', ready?.message);
    });
  }));
