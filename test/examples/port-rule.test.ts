import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { rulesFor } from '../../src/install/rules.js';
import { Example, root } from './support/example.js';

const example = await Example.load('port-rule', { protocol: 'TCP', isPermanent: false });

describe('the status', () => {
  /** A DaemonSet that is to have so many pods, of which so many are available. */
  const daemonSet = (desiredNumberScheduled: number, numberAvailable: number): object => ({
    DaemonSet: {
      status: {
        ...{ observedGeneration: 1, desiredNumberScheduled, numberAvailable },
        updatedNumberScheduled: desiredNumberScheduled,
      },
    },
  });

  test.each<[what: string, children: object, changes: object, ready: RegExp]>([
    ['without a DaemonSet', {}, {}, /^Unknown Opening/],
    [
      'before the DaemonSet was seen',
      { DaemonSet: { metadata: { name: 'x', generation: 1 } } },
      {},
      /^Unknown Opening/,
    ],
    ['while its pod starts', daemonSet(1, 0), {}, /^Unknown Opening: TCP port 9100 of node node-0 /],
    ['once its pod is ready', daemonSet(1, 1), {}, /^True Open: TCP port 9100 of node node-0 is open$/],
    [
      'once it is permanent',
      daemonSet(1, 1),
      { isPermanent: true },
      /^True Open: .* until the node restarts/,
    ],
    ['without such a node', daemonSet(0, 0), {}, /^False NoSuchNode: There is no node node-0$/],
  ])('%s', (_what, children, changes, ready) => {
    expect(example.ready(children as Record<string, object>, changes as Record<string, unknown>)).toMatch(
      ready,
    );
  });

  test('names the table, for whoever looks on the node', () => {
    expect(example.status({})).toMatchObject({ table: 'portrule_shop_node-exporter' });
  });
});

test('the CRD refuses what is no name, no port and no node', () => {
  const specs = [
    '{name: "x; flush ruleset", port: 1, host: a}',
    "{name: 'x\" accept', port: 1, host: a}",
    '{name: $(reboot), port: 1, host: a}',
    '{name: x, port: 0, host: a}',
    '{name: x, port: 65536, host: a}',
    '{name: x, port: 1, host: "*"}',
    '{name: x, port: 1}',
    '{name: x, port: 1, host: a, protocol: ICMP}',
  ];
  const type = 'apiVersion: firewalld.fedoraproject.org/v1, kind: PortRule';
  const documents = specs.map((spec, index) => `---\n{${type}, metadata: {name: x${index}}, spec: ${spec}}`);

  const { status, stderr } = example.node(
    [join(root, 'lib/bundle/reconstruct.mjs'), 'synth', '-'],
    documents.join('\n'),
  );

  const told = stderr.match(/document \d+, .*?: spec\.\w+/g)?.map((line) => line.replace(/, .*:/, ''));
  expect(told).toEqual([
    ...['document 1 spec.name', 'document 2 spec.name', 'document 3 spec.name', 'document 4 spec.port'],
    ...['document 5 spec.port', 'document 6 spec.host', 'document 7 spec.host', 'document 8 spec.protocol'],
  ]);
  expect(status).toBe(2);
});

test('the operator may write DaemonSets, and neither reads nor writes anything else of the cluster', () => {
  const rules = rulesFor([example.kind]).map(
    ({ resources, verbs }) => `${resources.join()}: ${verbs.join()}`,
  );

  expect(rules.sort()).toMatchInlineSnapshot(`
    [
      "customresourcedefinitions: get",
      "daemonsets: get,list,watch,create,patch,delete",
      "events: create,patch",
      "portrules/finalizers: update",
      "portrules/status: patch",
      "portrules: get,list,watch",
    ]
  `);
});

test('who may edit in a namespace may not open ports of nodes', () => {
  expect(example.kind.writers).toBe('admin');
});
