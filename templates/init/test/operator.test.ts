import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { Yaml } from 'cdk8s';
import type { Condition } from 'cdk8s-reconstruct';
import { eventually, withSandbox } from 'cdk8s-reconstruct/testing';
import { kind } from '../src/kind.ts';

const [sample] = Yaml.load(join(import.meta.dirname, '../samples/gizmo.yaml'));

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
