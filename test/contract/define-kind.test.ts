import { Construct } from 'constructs';
import { describe, expect, it } from 'vitest';
import { defineKind } from '../../src/author/define-kind.js';
import { podsOf } from '../../src/author/pods.js';
import { OperatorError } from '../../src/contract/error.js';
import type { OwnedKind } from '../../src/contract/kind.js';

class Widget extends Construct {}

const observedGeneration = { type: 'integer' };
const conditions = {
  type: 'array',
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['type'],
};
const withStatus = (properties: object) => ({
  ...{ name: 'v1', served: true, storage: true, subresources: { status: {} } },
  schema: { openAPIV3Schema: { type: 'object', properties: { status: { type: 'object', properties } } } },
});
const VERSION = withStatus({ observedGeneration, conditions });

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

const A_SERVICE = { apiVersion: 'v1', kind: 'Service' };
const A_SECRET = { apiVersion: 'v1', kind: 'Secret' };

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

  it('knows what is kept, which children may be recreated or need not be installed, and what is related', () => {
    const keep = (): object => ({});
    const job = { apiVersion: 'batch/v1', kind: 'Job', recreate: true };
    const route = { apiVersion: 'x.io/v1', kind: 'Route', optional: true };
    const kind = define({ children: [{ ...DEPLOYMENT, keep }, job, route], related: [PODS] });
    expect(kind.children).toMatchObject([{ keep }, job, route]);
    expect(kind.related).toEqual([{ ...PODS, plural: 'pods', namespaced: true }]);
    const [{ watches } = { watches: [] }] = kind.controllers({ render: () => [] });
    expect(watches.map(({ type }) => type.kind)).toEqual(['Widget', 'Deployment', 'Job', 'Route', 'Pod']);
    expect(watches.map(({ optional }) => optional)).toEqual([...Array<undefined>(3), true, undefined]);
    expect(watches[4]).toMatchObject({ selector: 'demo.io/widget', readOnly: true });
  });

  it('knows a kind without namespaces', () => {
    expect(define({ crd: crd({ scope: 'Cluster' }) }).type.namespaced).toBe(false);
  });

  it.each<[message: string, props: object]>([
    ['no CustomResourceDefinition', { crd: { apiVersion: 'v1', kind: 'ConfigMap' } }],
    ['spec.names.kind', { crd: crd({ names: undefined }) }],
    ['spec.versions', { crd: crd({ versions: undefined }) }],
    ['v1 has no schema', { crd: crd({ versions: [{ ...VERSION, schema: undefined }] }) }],
    ['storage: true', { crd: crd({ versions: [{ ...VERSION, storage: false }] }) }],
    [
      'v0 and v1 have different fields',
      { crd: crd({ versions: [{ ...VERSION, name: 'v0', schema: { openAPIV3Schema: {} } }, VERSION] }) },
    ],
    ['unknown option reference; did you mean references?', { reference: {} }],
    [
      "references.tls: write { apiVersion: 'v1', kind: 'Secret', name: (cr) => cr.spec.secretName }, not 'Secret'",
      { references: { tls: 'Secret' } },
    ],
    [
      'references.tls: give one of name, names, labels, selector, all, as in {',
      { references: { tls: A_SECRET } },
    ],
    [
      'references.tls: unknown option chosen; there are',
      { references: { tls: { ...A_SECRET, chosen: 'a' } } },
    ],
    [
      "references.tls: a name in all namespaces isn't one object; give selector or all, or one namespace",
      { references: { tls: { ...A_SECRET, name: () => 'a', namespace: '*' } } },
    ],
    [
      'references.tls: no namespace is called "Web"',
      { references: { tls: { ...A_SECRET, all: true, namespace: 'Web' } } },
    ],
    [
      'references.tls: data of all Secrets would be read; leave data out, or refer to them by their names',
      { references: { tls: { ...A_SECRET, all: true, data: true } } },
    ],
    [
      'references.node: Node has no namespace; add namespaced: false',
      { references: { node: { apiVersion: 'v1', kind: 'Node', name: () => 'a' } } },
    ],
    [
      'generated.pin: can be guessed: it has less than 64 random bits',
      { generated: { pin: { length: 10 } } },
    ],
    [
      'generated.pin: unknown option size; there are length, alphabet, bytes',
      { generated: { pin: { size: 1 } } },
    ],
    ['generated.key: give either bytes or length', { generated: { key: { bytes: 32, length: 32 } } }],
    [
      "children[0]: v1 has no Deployment; write { apiVersion: 'apps/v1', kind: 'Deployment' }",
      { children: [{ apiVersion: 'v1', kind: 'Deployment' }] },
    ],
    [
      'children[0]: recreate: "always" is none; write true, or \'orphan\'',
      { children: [{ ...DEPLOYMENT, recreate: 'always' }] },
    ],
    [
      'children[0]: createOnly would record values of a Secret in an annotation; leave it out, and see generated',
      { children: [{ ...A_SECRET, createOnly: ['.data'] }] },
    ],
    ...[[], '.spec'].map((createOnly): [string, object] => [
      'children[0]: createOnly: give paths of fields through maps',
      { children: [{ ...DEPLOYMENT, createOnly }] },
    ]),
    ...['spec', '.metadata.labels', '.status', '.spec.ports[0]', '.spec.', '.kind'].map(
      (path): [string, object] => [
        `as in ['.spec.volumeClaimTemplates']; "${path}" is none`,
        { children: [{ ...DEPLOYMENT, createOnly: [path] }] },
      ],
    ),
    [
      'createOnly: give paths of fields through maps, none within another',
      { children: [{ ...DEPLOYMENT, createOnly: ['.spec', '.spec.template'] }] },
    ],
    [
      'contributes[0]: takes would record values of a Secret in an annotation',
      { contributes: [{ ...A_SECRET, takes: ['.data'] }] },
    ],
    [
      'contributes[0]: takes: give paths of fields through maps, none within another and not of metadata or status, as in [\'.spec.replicas\']; ".status" is none',
      { contributes: [{ ...A_SERVICE, takes: ['.status'] }] },
    ],
    ['type Deployment.apps is listed twice', { contributes: [DEPLOYMENT] }],
    ['fields of others are given back on deletion', { contributes: [A_SECRET], finalizes: false }],
    ['related[0]: apps/v1 has no Pod', { related: [{ ...PODS, apiVersion: 'apps/v1' }] }],
    ['related[0]: give a label selector', { related: [{ ...PODS, selector: '' }] }],
    ['related[0]: give a label selector', { related: [{ ...PODS, selector: 'a=(' }] }],
    ['generated.pin: can be guessed', { generated: { pin: { alphabet: 'aa' } } }],
    [
      'generated.uri: a text is made by a function alone',
      { generated: { uri: { text: () => 'a', length: 32 } } },
    ],
    ['generated.uri: a text is made by a function alone', { generated: { uri: { texts: {} } } }],
    [
      'generated.tls: a certificate has a function and days; write { dnsNames: (cr) =>',
      { generated: { tls: { dnsNames: ['web'] } } },
    ],
    ['generated.tls: a certificate has a function', { generated: { tls: { days: 30 } } }],
    ...[0, 1.5, 1826, '30'].map((days): [string, object] => [
      `generated.tls: days: ${JSON.stringify(days)} is none; write a whole number from 1 to 1825`,
      { generated: { tls: { dnsNames: () => ['web'], days } } },
    ]),
    ...['tls.key', 'ca.crt', 'ca.key'].map((key): [string, object] => [
      `generated.tls: the key ${key} has another use in its Secret; give it another name`,
      { generated: { tls: { dnsNames: () => ['web'] }, [key]: {} } },
    ]),
    ['generated.ca: the key ca.crt has another use', { generated: { ca: { dnsNames: () => ['web'] } } }],
    ...[() => 'web', () => undefined].map((generatedSecretName): [string, object] => [
      'generatedSecretName: it returns the name of a Secret, another one for each custom resource; write (name) => `${name}-tls`',
      { generated: { key: {} }, generatedSecretName },
    ]),
    ['Widget has no namespace for a Secret', { crd: crd({ scope: 'Cluster' }), generated: { key: {} } }],
    ['type Secret is listed twice', { generated: { key: {} }, related: [{ ...PODS, kind: 'Secret' }] }],
    ['subresources: { status: {} }', { crd: crd({ versions: [{ ...VERSION, subresources: {} }] }) }],
    [
      'x-kubernetes-list-map-keys: [type]',
      { crd: crd({ versions: [withStatus({ observedGeneration, conditions: { type: 'array' } })] }) },
    ],
    ['Deployment.apps is listed twice', { children: [DEPLOYMENT, { ...DEPLOYMENT, apiVersion: 'apps/v2' }] }],
    ['Deployment.apps is listed twice', { formerChildren: [DEPLOYMENT] }],
    [
      'listed twice; give podsOf(crd, { keep }) in place of both',
      { related: [podsOf({ apiVersion: 'demo.io/v1', kind: 'Widget' }), PODS] },
    ],
    ['Deployment.apps is listed twice', { related: [{ ...PODS, ...DEPLOYMENT }] }],
    [
      'defineKind: children[1]: ClusterRole.rbac.authorization.k8s.io has no namespace; write {',
      { children: [DEPLOYMENT, { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole' }] },
    ],
    [
      'children[0]: leave namespaces out: Zone.x.io has no namespace',
      { children: [{ apiVersion: 'x.io/v1', kind: 'Zone', namespaced: false, namespaces: '*' }] },
    ],
    [
      'children[0]: leave namespaces out: Widget is cluster-scoped, and may have its children anywhere',
      { crd: crd({ scope: 'Cluster' }), children: [{ ...DEPLOYMENT, namespaces: ['web'] }] },
    ],
    [
      `children[0]: namespaces: give names, as in ['istio-gateways'], or '*' for all; "Web" is none`,
      { children: [{ ...DEPLOYMENT, namespaces: ['Web'] }] },
    ],
    [
      `formerChildren[0]: namespaces: give names, as in ['istio-gateways'], or '*' for all`,
      { formerChildren: [{ ...DEPLOYMENT, namespaces: [] }] },
    ],
    [
      "children[0]: Namespace has no namespace; write { apiVersion: 'v1', kind: 'Namespace', namespaced: false }",
      { crd: crd({ scope: 'Cluster' }), children: [{ apiVersion: 'v1', kind: 'Namespace' }] },
    ],
    ['no-such-file.yaml', { crd: 'no-such-file.yaml' }],
    ['formerChildren[0]: unknown option recreate', { formerChildren: [{ ...DEPLOYMENT, recreate: true }] }],
  ])('refuses what is wrong: %s', (message, props) => {
    const failed = (): unknown => define(props);
    expect(failed).toThrow(OperatorError);
    expect(failed).toThrow(message);
  });
});
