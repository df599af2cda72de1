import { Construct } from 'constructs';
import { describe, expect, it } from 'vitest';
import { defineKind } from '../../src/contract/define-kind.js';
import { OperatorError } from '../../src/contract/error.js';
import type { OwnedKind } from '../../src/contract/kind.js';

class Widget extends Construct {}

const VERSION = {
  name: 'v1',
  served: true,
  storage: true,
  schema: {
    openAPIV3Schema: {
      type: 'object',
      properties: {
        status: {
          type: 'object',
          properties: { observedGeneration: { type: 'integer' }, conditions: { type: 'array' } },
        },
      },
    },
  },
  subresources: { status: {} },
};

const SPEC = {
  group: 'demo.io',
  scope: 'Namespaced',
  names: { kind: 'Widget', plural: 'widgets' },
  versions: [VERSION],
};

const crd = (spec: object = {}): object => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.demo.io' },
  spec: { ...SPEC, ...spec },
});

const DEPLOYMENT = { apiVersion: 'apps/v1', kind: 'Deployment' };

const PODS = {
  ...{ apiVersion: 'v1', kind: 'Pod', selector: 'demo.io/widget' },
  keep: () => ({}),
  nameOf: () => undefined,
};

const define = (props: object = {}): OwnedKind =>
  defineKind({ crd: crd(), construct: Widget, children: [DEPLOYMENT], ...props } as never);

describe('defineKind', () => {
  it('takes the stored version and completes the types of children', () => {
    const old = { ...VERSION, name: 'v1alpha1', storage: false };
    const retired = { ...old, name: 'v0', served: false, schema: { openAPIV3Schema: { type: 'object' } } };
    const kind = define({
      crd: crd({ versions: [retired, old, VERSION] }),
      formerChildren: [{ apiVersion: 'v1', kind: 'Secret' }],
    });
    expect(kind).toMatchObject({
      name: 'widget',
      type: { apiVersion: 'demo.io/v1', kind: 'Widget', plural: 'widgets', namespaced: true },
      children: [{ plural: 'deployments', namespaced: true }],
      formerChildren: [{ plural: 'secrets' }],
    });
  });

  it('knows which children may be deleted and made anew', () => {
    const job = { apiVersion: 'batch/v1', kind: 'Job', recreate: true };
    const { children } = define({ children: [job, { ...DEPLOYMENT, recreate: false }] });
    expect(children).toMatchObject([{ kind: 'Job', recreate: true }, { kind: 'Deployment' }]);
    expect(children[1]).not.toHaveProperty('recreate');
  });

  it('knows what is kept, which children need not be installed, and what is related', () => {
    const keep = (): object => ({});
    const kind = define({
      children: [
        { ...DEPLOYMENT, keep },
        { apiVersion: 'x.io/v1', kind: 'Route', optional: true },
      ],
      related: [PODS],
    });
    expect(kind.children).toMatchObject([{ keep }, { optional: true }]);
    expect(kind.children[0]).not.toHaveProperty('optional');
    expect(kind.related).toEqual([{ ...PODS, plural: 'pods', namespaced: true }]);
    const watches = kind
      .controller(() => [])
      .watches.map(({ type, selector, readOnly, optional }) => [
        type.kind,
        ...[selector, readOnly, optional],
      ]);
    expect(watches).toEqual([
      ['Widget', undefined, undefined, undefined],
      ['Deployment', undefined, undefined, undefined],
      ['Route', undefined, undefined, true],
      ['Pod', 'demo.io/widget', true, undefined],
    ]);
  });

  it('knows a kind without namespaces', () => {
    expect(define({ crd: crd({ scope: 'Cluster' }) }).type.namespaced).toBe(false);
  });

  it.each([
    ['resources.azure.com/v1api20200601', 'ResourceGroup'],
    ['example.com/stable', 'Thing'],
    ['v1.example.com/v1', 'Thing'],
    ['cluster.x-k8s.io/v1beta1', 'Machine'],
  ])('takes a child of %s, as the API server does', (apiVersion, kind) => {
    expect(define({ children: [{ apiVersion, kind }] }).children).toMatchObject([{ apiVersion, kind }]);
  });

  it.each([
    'example.com/',
    'example.com/1',
    'example.com/V1',
    'example.com/v1/x',
    'Example.com/v1',
    'x/stable',
  ])('refuses a child of %s', (apiVersion) => {
    const refused = (): unknown => define({ children: [{ apiVersion, kind: 'Thing' }] });
    expect(refused).toThrow(`defineKind: children[0]: ${apiVersion} is no apiVersion`);
  });

  it.each([
    ['another object', { crd: { apiVersion: 'v1', kind: 'ConfigMap' } }, 'no CustomResourceDefinition'],
    ['a CRD without names', { crd: crd({ names: undefined }) }, 'spec.names.kind'],
    ['a CRD without versions', { crd: crd({ versions: undefined }) }, 'spec.versions'],
    [
      'a CRD without schema',
      { crd: crd({ versions: [{ ...VERSION, schema: undefined }] }) },
      'v1 has no schema',
    ],
    [
      'a CRD that stores no version',
      { crd: crd({ versions: [{ ...VERSION, storage: false }] }) },
      'storage: true',
    ],
    [
      'a CRD whose served versions have different fields',
      {
        crd: crd({
          versions: [
            { ...VERSION, name: 'v0', storage: false, schema: { openAPIV3Schema: { type: 'object' } } },
            VERSION,
          ],
        }),
      },
      'v0 and v1 have different fields',
    ],
    [
      'a CRD without status',
      { crd: crd({ versions: [{ ...VERSION, subresources: {} }] }) },
      'subresources: { status: {} }',
    ],
    [
      'a child twice',
      { children: [DEPLOYMENT, { ...DEPLOYMENT, apiVersion: 'apps/v2' }] },
      'Deployment.apps is listed twice',
    ],
    ['a child among the former ones', { formerChildren: [DEPLOYMENT] }, 'Deployment.apps is listed twice'],
    [
      'a child of the whole cluster, where its owner has a namespace',
      { children: [{ apiVersion: 'x.io/v1', kind: 'Zone', namespaced: false }] },
      'defineKind: children[0]: Zone.x.io has no namespace, and Widget has one: the cluster would delete it, since nothing in a namespace can own it; set "scope: Cluster" in the CRD, or leave it out',
    ],
    [
      'a child of the whole cluster that is declared as another',
      { children: [DEPLOYMENT, { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole' }] },
      'defineKind: children[1]: ClusterRole.rbac.authorization.k8s.io has no namespace, and Widget has one',
    ],
    [
      'a child of the whole cluster that is not declared so',
      {
        crd: crd({ scope: 'Cluster' }),
        children: [{ apiVersion: 'v1', kind: 'Namespace' }],
      },
      "defineKind: children[0]: Namespace has no namespace; write { apiVersion: 'v1', kind: 'Namespace', namespaced: false }",
    ],
    ['a file that is not there', { crd: 'no-such-file.yaml' }, 'no-such-file.yaml'],
    ['a construct that is no class', { construct: () => undefined }, 'construct'],
    [
      'a construct that extends nothing',
      { construct: Map },
      'defineKind: construct: give a class that extends Construct, such as class Website extends Construct {',
    ],
    ['no construct', { construct: undefined }, 'not nothing'],
    ['no children', { children: undefined }, 'children'],
    [
      'a child without its group',
      { children: [{ apiVersion: 'v1', kind: 'Deployment' }] },
      "defineKind: children[0]: The core group has no Deployment; write { apiVersion: 'apps/v1', kind: 'Deployment' }",
    ],
    [
      'a child of another group without it',
      { children: [{ apiVersion: 'v1', kind: 'Ingress' }] },
      "write { apiVersion: 'networking.k8s.io/v1', kind: 'Ingress' }",
    ],
    [
      'a child in another group',
      { children: [{ apiVersion: 'apps/v1', kind: 'Job' }] },
      "apps has no Job; write { apiVersion: 'batch/v1', kind: 'Job' }",
    ],
    [
      'a child in the plural',
      { children: [{ apiVersion: 'apps/v1', kind: 'deployments' }] },
      "apps has no deployments; write { apiVersion: 'apps/v1', kind: 'Deployment' }",
    ],
    [
      'a child in lower case',
      { children: [{ apiVersion: 'cert-manager.io/v1', kind: 'certificates' }] },
      "defineKind: children[0]: certificates is no kind, which is in PascalCase and singular; write { apiVersion: 'apps/v1', kind: 'Deployment' } or the like",
    ],
    [
      'a child without version',
      { children: [{ apiVersion: 'apps', kind: 'Deployment' }] },
      "apps is no apiVersion, which is v1 or group/version; write { apiVersion: 'apps/v1', kind: 'Deployment' }",
    ],
    [
      'a version that Kubernetes has none of',
      { children: [{ apiVersion: 'networking.k8s.io/stable', kind: 'Ingress' }] },
      "networking.k8s.io/stable is no apiVersion, which is v1 or group/version; write { apiVersion: 'networking.k8s.io/v1', kind: 'Ingress' }",
    ],
    [
      'a version that is served no more',
      { children: [{ apiVersion: 'apps/v1beta1', kind: 'Deployment' }] },
      "apps/v1beta1 has no Deployment any more, which has a stable version; write { apiVersion: 'apps/v1', kind: 'Deployment' }",
    ],
    [
      'a request that is stored nowhere',
      { children: [{ apiVersion: 'v1', kind: 'Binding' }] },
      'children[0]: Binding is a request, which the API server stores nowhere, so it can be no child; list what it makes or changes',
    ],
    [
      'a related type that is none',
      { related: [{ ...PODS, apiVersion: 'apps/v1' }] },
      "defineKind: related[0]: apps has no Pod; write { apiVersion: 'v1', kind: 'Pod' }",
    ],
    [
      'a child that is made anew or not',
      { children: [{ ...DEPLOYMENT, recreate: 'yes' }] },
      'children[0].recreate: give true or false',
    ],
    ['a child that is related', { related: [{ ...PODS, ...DEPLOYMENT }] }, 'Deployment.apps is listed twice'],
    ['a related type twice', { related: [PODS, PODS] }, 'Pod is listed twice'],
    ['a related type without selector', { related: [{ ...PODS, selector: '' }] }, 'related[0].selector'],
    ['a selector that is no text', { related: [{ ...PODS, selector: {} }] }, 'related[0].selector'],
    ['a related type that keeps nothing', { related: [{ ...PODS, keep: true }] }, 'related[0].keep'],
    ['a related type of nobody', { related: [{ ...PODS, nameOf: undefined }] }, 'related[0].nameOf'],
    ['a related type that is written', { related: [{ ...PODS, recreate: true }] }, 'option recreate'],
    ['related types that are no list', { related: {} }, 'defineKind: related'],
    ['a child that keeps no function', { children: [{ ...DEPLOYMENT, keep: [] }] }, 'children[0].keep'],
    [
      'a child that is optional or not',
      { children: [{ ...DEPLOYMENT, optional: 1 }] },
      'children[0].optional',
    ],
    ['a hand-over that is no function', { handOver: {} }, 'defineKind: handOver: give a function'],
    ['a policy that is no schema', { policySchema: true }, 'defineKind: policySchema'],
    [
      'a former child that is made anew',
      { formerChildren: [{ apiVersion: 'v1', kind: 'Secret', recreate: true }] },
      "formerChildren[0]: doesn't know the option recreate",
    ],
  ])('refuses %s with a reason', (_, props, message) => {
    const failed = (): unknown => define(props);
    expect(failed).toThrow(OperatorError);
    expect(failed).toThrow(message);
  });
});
