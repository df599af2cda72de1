import { describe, expect, test } from 'vitest';
import { storedVersion } from '../../../src/contract/crd.js';
import { OperatorError } from '../../../src/contract/error.js';
import type { AnyObject } from '../../../src/contract/object.js';
import { appService } from '../../../src/kinds/app-service/kind.js';
import { condition, counts, PROGRESSING, QUOTA, report } from './report.js';

const metadata = { name: 'web', namespace: 'shop' };

function service(ports: readonly object[]): AnyObject {
  const spec = { type: 'NodePort', ports };
  return { apiVersion: 'v1', kind: 'Service', metadata, status: { loadBalancer: {} }, spec };
}

describe('fields', () => {
  test('counters are copied, and those that are 0 on the wire are 0', () => {
    const { fields } = report({ status: { replicas: 2, updatedReplicas: 2, unavailableReplicas: 2 } });

    expect(fields).toEqual({
      replicas: 2,
      updatedReplicas: 2,
      readyReplicas: 0,
      availableReplicas: 0,
      unavailableReplicas: 2,
      selector: 'kosmos.io/appservice=web',
    });
  });

  test('counters that only some clusters keep are copied where they are, and no generation', () => {
    const { fields } = report({ status: { ...counts(1, 1, 1), terminatingReplicas: 0, collisionCount: 2 } });

    expect(fields).toMatchObject({ terminatingReplicas: 0, collisionCount: 2 });
    expect(fields).not.toHaveProperty('observedGeneration');
  });

  test('without children there is the selector, which autoscalers read', () => {
    expect(report({})).toMatchObject({ fields: { selector: 'kosmos.io/appservice=web' }, conditions: [] });
  });

  test('the image is that of the container named as the AppService', () => {
    const containers = [
      { name: 'injected', image: 'proxy:1' },
      { name: 'web', image: 'nginx:1.27@sha256:abc' },
    ];
    const kept = { spec: { replicas: 4, template: { spec: { containers } } } };

    expect(report({ status: {}, kept }).fields).toHaveProperty('image', 'nginx:1.27@sha256:abc');
  });

  const [web, dns] = [
    { name: 'web', port: 80, nodePort: 30080, protocol: 'TCP' },
    { name: 'dns', port: 53, nodePort: 30053, protocol: 'UDP' },
  ];
  const given = { targetPort: 'http', appProtocol: 'http' };
  const local = { port: 80, protocol: 'TCP' };

  test.each([
    ['no Service', []],
    ['a Service without ports', [service([])]],
    ['a Service of which nothing is kept', [{ apiVersion: 'v1', kind: 'Service', metadata }]],
    ['one that was just made a ClusterIP Service', [service([{ ...local, nodePort: 0 }])], [local], '80/TCP'],
    [
      'a NodePort Service: in its order, with the ports that it was given',
      [
        service([
          { ...web, ...given },
          { ...dns, ...given },
        ]),
      ],
      [web, dns],
      '80:30080/TCP,53:30053/UDP',
    ],
  ])('ports of %s, and in one line', (_, children, ports?: object[], portSummary?: string) => {
    const { fields } = report({ children });

    expect([fields?.ports, fields?.portSummary]).toEqual([ports, portSummary]);
  });

  test('the line of as many ports as there can be fits into the schema', () => {
    const ports = Array.from({ length: 64 }, () => ({ port: 65535, nodePort: 65535, protocol: 'SCTP' }));
    const status = storedVersion(appService.crd).schema.openAPIV3Schema.properties!.status!;

    const { portSummary } = report({ children: [service(ports)] }).fields!;

    expect((portSummary as string).length).toBe(status.properties!.portSummary!.maxLength);
  });
});

describe('conditions', () => {
  test("are the Deployment's, in one order, without its times", () => {
    // GIVEN
    const times = { lastUpdateTime: '2026-01-01T00:00:00Z', lastTransitionTime: '2026-01-01T00:00:00Z' };
    const available = condition('Available', 'True', 'MinimumReplicasAvailable', 'enough');
    const own = condition('SomebodysOwn', 'True', 'X', '');

    // WHEN
    const { conditions } = report({
      status: {
        ...counts(1, 1, 1),
        conditions: [QUOTA, PROGRESSING, own, available].map((each) => ({ ...each, ...times })),
      },
    });

    // THEN
    expect(conditions).toEqual([available, PROGRESSING, QUOTA]);
  });

  test('have a reason and a message where the Deployment gives none', () => {
    const { conditions } = report({ status: { conditions: [{ type: 'Available', status: 'Unknown' }] } });

    expect(conditions).toEqual([{ type: 'Available', status: 'Unknown', reason: 'Available', message: '' }]);
  });

  test('tell what the policy refuses, beside other failures, and nothing else of a policy', () => {
    const denied = { reason: 'PolicyDenied', message: 'spec.size: 50 is more than the policy allows: 10' };
    const other = { error: new OperatorError({ reason: 'Forbidden', message: 'no' }) };
    const failures = [other, { error: new OperatorError(denied) }];

    expect(report({ failures }).conditions).toEqual([
      condition('Accepted', 'False', denied.reason, denied.message),
    ]);
    expect(report({ failures: [other] }).conditions).toEqual([]);
  });
});
