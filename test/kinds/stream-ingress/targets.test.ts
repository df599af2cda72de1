import { describe, expect, test } from 'vitest';
import { OperatorError } from '../../../src/contract/error.js';
import { flags, policySchema, targetName, targetsIn } from '../../../src/kinds/stream-ingress/targets.js';
import type { StreamIngressPolicy } from '../../../src/kinds/stream-ingress/targets.js';
import { compileSchema } from '../../../src/validate/schema.js';
import { target } from './builders.js';

const edge = { name: 'edge', kind: 'Gateway', gateway: 'gateways/edge' } as const;
const inner = { name: 'inner', ingressNamespace: 'inner' };

function refusal(policy: StreamIngressPolicy): string {
  try {
    targetsIn({ policy });
  } catch (error) {
    expect(error).toBeInstanceOf(OperatorError);
    expect(error).toHaveProperty('reason', 'InvalidInput');
    return (error as OperatorError).message;
  }
  throw new Error('they were taken');
}

describe('targets', () => {
  test('without flags and policy: the ingress-nginx of its own chart', () => {
    expect(targetsIn({})).toEqual({
      ...{ all: [target], defaultName: 'default' },
      ...{ crossNamespace: 'ReferenceGrant', routeVersion: 'v1' },
    });
  });

  test('every flag describes the default target', () => {
    const given = Object.fromEntries(flags.map(({ name }) => [name, `of${name}`]));

    const { all } = targetsIn({ flags: { ...given, '--ingress-controller': 'DaemonSet/nginx' } });

    expect(all).toEqual([
      {
        ...target,
        ingressNamespace: 'of--ingress-namespace',
        ingressService: 'of--ingress-service',
        tcpServicesConfigMap: 'of--tcp-services-configmap',
        udpServicesConfigMap: 'of--udp-services-configmap',
        ingressController: 'DaemonSet/nginx',
      },
    ]);
  });

  test.each<[string, StreamIngressPolicy, Record<string, string>, string]>([
    ['the only one', { targets: [edge] }, {}, 'edge'],
    ['none of several', { targets: [edge, inner] }, {}, '-'],
    ['the one that is said', { targets: [edge, inner], defaultClass: 'inner' }, {}, 'inner'],
    ['that of the flags', { targets: [edge] }, { '--ingress-service': 'nginx' }, 'default'],
    [
      'the one that is said, whatever the flags',
      { targets: [edge], defaultClass: 'edge' },
      { '--ingress-service': 'a' },
      'edge',
    ],
  ])('default: %s', (_, policy, given, name) => {
    expect(targetName(targetsIn({ policy, flags: given }), undefined)).toBe(name);
  });
});

describe('are refused', () => {
  const x = { name: 'x', ingressNamespace: 'a' };
  const y = { ...x, name: 'y', udpServicesConfigMap: 'u' };
  const same = { tcpServicesConfigMap: 'same', udpServicesConfigMap: 'same' };

  test.each<[string, StreamIngressPolicy['targets'], defaultClass?: string]>([
    ['target edge: gateway is missing; give the Gateway', [{ name: 'edge', kind: 'Gateway' }]],
    ['target edge: ingressService says nothing about a target', [{ ...edge, ingressService: 'a' }]],
    ['target inner: gateway says nothing about a target', [{ ...inner, gateway: 'a/b' }]],
    ['target inner: portRanges: "9-8" is no range', [{ ...inner, portRanges: ['9-8'] }]],
    ['target inner: portRanges: "0" is no range', [{ ...inner, portRanges: ['0'] }]],
    ['target inner: portRanges: "1-65536" is no range', [{ ...inner, portRanges: ['1-65536'] }]],
    ['target inner: same is the ConfigMap of both TCP and UDP', [{ ...inner, ...same }]],
    ['target edge is there twice, in edge and edge', [edge, edge]],
    [
      'Service a/ingress-nginx-controller is there twice, in x and y',
      [x, { ...y, tcpServicesConfigMap: 't' }],
    ],
    ['ConfigMap a/tcp-services is there twice, in x and y', [x, { ...y, ingressService: 'b' }]],
    ['defaultClass: there is no target other; the targets are edge', [edge], 'other'],
  ])('%s', (message, targets, defaultClass) => {
    expect(refusal({ ...(targets && { targets }), ...(defaultClass && { defaultClass }) })).toContain(
      message,
    );
  });

  test('all at once', () => {
    expect(
      refusal({ targets: [{ ...inner, portRanges: ['9-8', '0'] }], defaultClass: 'a' }).match(
        /; give|; the/g,
      ),
    ).toHaveLength(3);
  });
});

test.each([
  ['--ingress-namespace', 'a/b'],
  ['--ingress-controller', 'StatefulSet/a'],
])('the flag %s refuses %s', (name, value) => {
  expect(flags.find((flag) => flag.name === name)?.check?.(value)).toMatch(/give/);
});

describe('the schema of the policy', () => {
  const validate = compileSchema({ type: 'object', properties: { spec: policySchema } });
  const judge = (spec: object) =>
    validate({ apiVersion: 'v1', kind: 'Policy', metadata: {}, spec }).map(({ path }) =>
      path.slice(1).join('.'),
    );

  test.each([
    ['targets.0.name', { targets: [{}] }],
    ['targets.0.kind', { targets: [{ name: 'a', kind: 'Traefik' }] }],
    ['targets.0.ingressController', { targets: [{ ...inner, ingressController: 'StatefulSet/a' }] }],
    ['targets.0.portRanges.0', { targets: [{ ...inner, portRanges: ['all'] }] }],
    ['targets.1', { targets: [edge, edge] }],
    ['crossNamespace', { crossNamespace: 'Anybody' }],
  ])('refuses at %s', (path, policy) => {
    expect(judge(policy)).toContain(path);
  });
});
