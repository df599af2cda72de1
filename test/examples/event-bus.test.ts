import { describe, expect, test } from 'vitest';
import { join } from 'node:path';
import { Example, root } from './support/example.js';

const storage = { size: '5Gi' };
const example = await Example.load('event-bus', {
  ...{ replicas: 3, image: 'nats:1', memoryMiB: 256, debug: false, whenDeleted: 'Retain', storage },
});

describe('the status', () => {
  /** A StatefulSet of three pods. */
  const servers = (status: object, currentRevision = 'b'): Readonly<Record<string, object>> => ({
    StatefulSet: {
      status: {
        ...{ observedGeneration: 1, replicas: 3, currentRevision, updateRevision: 'b', ...status },
      },
    },
  });

  test.each<[what: string, children: Readonly<Record<string, object>>, ready: string]>([
    ['before there are servers', {}, 'Unknown Starting: The servers are yet to be made'],
    [
      'while they start',
      servers({ readyReplicas: 1, updatedReplicas: 3, availableReplicas: 1 }),
      'Unknown Starting: 1 of 3 servers are ready',
    ],
    [
      'while they are replaced',
      servers({ readyReplicas: 2, updatedReplicas: 1, availableReplicas: 2 }, 'a'),
      'Unknown RollingOut: 1 of 3 servers run with the present settings, and 2 are ready; orders-1 is next',
    ],
    [
      'while the last one starts anew',
      servers({ readyReplicas: 2, updatedReplicas: 3, availableReplicas: 2 }, 'a'),
      'Unknown Starting: 2 of 3 servers are ready',
    ],
    [
      'once all are there',
      servers({ readyReplicas: 3, updatedReplicas: 3, availableReplicas: 3 }),
      'True Available: All of 3 servers are ready',
    ],
  ])('%s', (_what, children, ready) => {
    expect(example.ready(children)).toBe(ready);
  });

  test('counts the servers', () => {
    const status = example.status(servers({ readyReplicas: 2, updatedReplicas: 1 }, 'a'));

    expect(status).toMatchObject({ replicas: 3, readyReplicas: 2, updatedReplicas: 1 });
  });
});

test('the CRD refuses names that are taken, majorities that are none, and sizes that it can not read', () => {
  const crs = [
    ['orders-peers', '{}'],
    ['9lives', '{}'],
    ['two', '{replicas: 2}'],
    ['large', '{storage: {size: 5GB}}'],
  ].map(
    ([name, spec]) =>
      `---\n{apiVersion: events.example.com/v1, kind: EventBus, metadata: {name: ${name}}, spec: ${spec}}`,
  );

  const { status, stderr } = example.node(
    [join(root, 'lib/bundle/reconstruct.mjs'), 'synth', '-'],
    crs.join('\n'),
  );

  const [peers, letter, replicas, size] = stderr.trim().split('\n');
  expect(peers).toMatch(/document 1.* choose one that doesn't end with "-peers"/);
  expect(letter).toMatch(/document 2.* with a letter first/);
  expect(replicas).toMatch(/document 3.* spec\.replicas: /);
  expect(size).toMatch(/document 4.* spec\.storage\.size: /);
  expect(status).toBe(2);
});
