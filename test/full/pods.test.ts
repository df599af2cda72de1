import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { expect, test } from 'vitest';
import { defineCrd } from '../../src/author/define-crd.js';
import { defineKind } from '../../src/author/define-kind.js';
import type { CustomResourceProps } from '../../src/contract/kind.js';
import { selectorLabels } from '../../src/contract/names.js';
import { podsOf } from '../../src/author/pods.js';
import { Operator } from '../../src/testing/operator.js';
import { Subject } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';

const cluster = openCluster();

const queueCrd = defineCrd({
  ...{ group: 'pods.example.com', kind: 'Queue', description: 'A StatefulSet.' },
  spec: { type: 'object', required: ['image'], properties: { image: { type: 'string' } } },
});

class Queue extends Construct {
  constructor(
    scope: Construct,
    id: string,
    { metadata: { name }, spec }: CustomResourceProps<{ image: string }>,
  ) {
    super(scope, id);
    const labels = selectorLabels(queueCrd, name);
    const template = { metadata: { labels }, spec: { containers: [{ name: 'queue', image: spec.image }] } };
    new ApiObject(this, 'StatefulSet', {
      ...{ apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { name } },
      spec: { serviceName: name, selector: { matchLabels: labels }, template },
    });
  }
}

test('an own kind says what keeps the Pods of a StatefulSet from running, and is ready once they do', async () => {
  const children = [{ apiVersion: 'apps/v1', kind: 'StatefulSet' }];
  const queue = defineKind({ crd: queueCrd, construct: Queue, children, related: [podsOf(queueCrd)] });
  const queues = await Subject.make(cluster, queue, 'queues');
  const { adminKubeconfig } = cluster.sandbox;
  using operator = await Operator.start({
    kubeconfig: adminKubeconfig,
    kinds: [queue],
    namespaces: [queues.namespace],
  });
  await queues.create('jobs', { image: 'sandbox.invalid/no-image:1' });

  const ready = await queues.condition('jobs', { type: 'Ready', reason: 'ImagePullBackOff' });
  expect(ready.message).toContain('image "sandbox.invalid/no-image:1" of container "queue" can\'t be pulled');
  await cluster.delete({ type: queue.type, namespace: queues.namespace, name: 'jobs' });

  await queues.create('good', { image: 'example.com/queue:1' });
  await queues.ready('good');
  await operator.stop();
});
