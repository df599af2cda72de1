import { describe, expect, test } from 'vitest';
import {
  holderText,
  isFree,
  keepArguments,
  keepConfigMap,
  keepTargetService,
} from '../../../src/kinds/stream-ingress/kept.js';
import { managed, MANAGER, object } from './builders.js';

describe('of a ConfigMap', () => {
  const keys = (...names: string[]) => ({
    'f:data': Object.fromEntries(names.map((name) => [`f:${name}`, {}])),
  });
  const kept = (...managedFields: object[]) =>
    keepConfigMap(object('ConfigMap', 'i/tcp', { metadata: { managedFields }, data: { 9000: 'a/b:1' } }));

  test('a key is ours alone, of others, of both, or of nobody that is known', () => {
    const ours = managed(MANAGER, keys('9000'));
    const helm = managed('helm', keys('9000'), 'Update');
    expect(kept(ours).entries).toEqual({ 9000: { value: 'a/b:1', ours: true, others: [] } });
    expect(kept(helm, managed(MANAGER, keys('9001'))).entries).toEqual({
      9000: { value: 'a/b:1', ours: false, others: ['helm'] },
    });
    expect(kept(ours, helm).entries['9000']).toMatchObject({ ours: true, others: ['helm'] });
    expect(kept().entries['9000']).toMatchObject({ ours: false, others: [] });
  });

  test('what was written under our name in another way isn’t ours', () => {
    expect(kept(managed(MANAGER, keys('9000'), 'Update')).entries['9000']).toMatchObject({ ours: false });
    expect(kept({ ...managed(MANAGER, keys('9000')), subresource: 'status' }).entries['9000']).toMatchObject({
      ours: false,
    });
  });

  test('it is managed by us as long as anything in it is ours, be it an annotation', () => {
    expect(kept(managed(MANAGER, { 'f:metadata': {} })).managed).toBe(true);
    expect(kept(managed('helm', keys('9000'))).managed).toBe(false);
    expect(kept().managed).toBe(false);
  });
});

test('free is what isn’t there, and what is ours alone; the holder has a name where there is one', () => {
  expect(isFree(undefined)).toBe(true);
  expect(isFree({ ours: true, others: [] })).toBe(true);
  expect(isFree({ ours: true, others: ['helm'] })).toBe(false);
  expect(isFree({ ours: false, others: [] })).toBe(false);
  expect(holderText({ ours: false, others: ['helm', 'kubectl-edit'] })).toBe(
    'the field manager helm, kubectl-edit',
  );
  expect(holderText({ ours: false, others: [] })).toContain('no record');
});

describe('of the Service of a target', () => {
  const item = (port: number, protocol: string, ...fields: string[]) => ({
    'f:spec': {
      'f:ports': {
        [`k:{"port":${port},"protocol":"${protocol}"}`]: Object.fromEntries(
          fields.map((field) => [field, {}]),
        ),
      },
    },
  });
  const kept = (...managedFields: object[]) =>
    Object.values(
      keepTargetService(
        object('Service', 'i/nginx', {
          metadata: { managedFields },
          spec: {
            ports: [
              { name: 'si-9000-tcp', port: 9000, targetPort: 9000, protocol: 'TCP', nodePort: 30000 },
              { name: 'dns', port: 9000, protocol: 'UDP' },
            ],
          },
        }),
      ).open,
    );

  test('a port is told apart by number and protocol', () => {
    const [tcp, udp] = kept(
      managed(MANAGER, item(9000, 'TCP', '.', 'f:name')),
      managed('helm', item(9000, 'UDP', '.')),
    );
    expect(tcp).toEqual({
      ...{ name: 'si-9000-tcp', port: 9000, protocol: 'TCP', targetPort: 9000, ours: true, others: [] },
    });
    expect(udp).toEqual({ name: 'dns', port: 9000, protocol: 'UDP', ours: false, others: ['helm'] });
  });

  test('who has set the node port alone isn’t in our way; who has set the target is', () => {
    const ours = managed(MANAGER, item(9000, 'TCP', '.', 'f:name', 'f:port', 'f:protocol'));
    const by = (field: string) => managed('kubectl-edit', item(9000, 'TCP', field), 'Update');
    expect(kept(ours, by('f:nodePort'))[0]).toMatchObject({ ours: true, others: [] });
    expect(kept(ours, by('f:targetPort'))[0]).toMatchObject({ ours: true, others: ['kubectl-edit'] });
  });

  test('where it is reached, and what the cloud says of its ports', () => {
    const status = {
      loadBalancer: {
        ingress: [
          {
            ip: '1.2.3.4',
            ports: [
              { port: 53, protocol: 'UDP', error: 'MixedProtocolNotSupported' },
              { port: 80, protocol: 'TCP' },
            ],
          },
          { hostname: 'lb.example.com' },
        ],
      },
      conditions: [{ type: 'LoadBalancerPortsError', status: 'True', message: 'no mixture' }],
    };
    expect(keepTargetService(object('Service', 'i/nginx', { status }))).toMatchObject({
      addresses: [
        { address: '1.2.3.4', errors: [{ port: 53, protocol: 'UDP', error: 'MixedProtocolNotSupported' }] },
        { address: 'lb.example.com', errors: [] },
      ],
      portsError: 'no mixture',
    });
    const healed = { conditions: [{ type: 'LoadBalancerPortsError', status: 'False' }] };
    expect(keepTargetService(object('Service', 'i/nginx', { status: healed }))).not.toHaveProperty(
      'portsError',
    );
  });
});

describe('of the controller of a target, the ConfigMaps that it reads', () => {
  const kept = (...containers: object[]) =>
    keepArguments(
      object('Deployment', 'ingress-nginx/nginx', { spec: { template: { spec: { containers } } } }),
    );

  test.each([
    ['--tcp-services-configmap=a/b'],
    ['--tcp-services-configmap', 'a/b'],
    ['--tcp-services-configmap=x/y', '--tcp-services-configmap=a/b'],
  ])('from its arguments: %s %s', (...args) => {
    expect(kept({ args })).toEqual({ TCP: 'a/b' });
    expect(kept({ command: ['/nginx-ingress-controller', ...args] })).toEqual({ TCP: 'a/b' });
  });

  test('with the namespace as the chart writes it', () => {
    const container = {
      args: ['--udp-services-configmap=$(POD_NAMESPACE)/$(NAME)', '--tcp-services-configmap=$(OTHER)/x'],
      env: [
        { name: 'POD_NAMESPACE', valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } } },
        { name: 'NAME', value: 'udp' },
      ],
    };
    expect(kept({ args: ['sidecar'] }, container)).toEqual({ UDP: 'ingress-nginx/udp', TCP: '$(OTHER)/x' });
  });

  test('none where it is told none', () => {
    expect(kept({ args: ['--publish-service=a/b'] }, {})).toEqual({});
    expect(keepArguments(object('Deployment', 'a/b'))).toEqual({});
  });
});
