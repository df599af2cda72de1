/**
 * HTTPRoute as the Gateway API defines it, as far as an AppService uses it: with the defaults and the kinds of lists
 * that decide who owns what.
 * @see https://gateway-api.sigs.k8s.io/reference/spec/#httproute
 */
const string = { type: 'string' };
const integer = { type: 'integer', format: 'int32' };
const text = (standard: string): object => ({ ...string, default: standard });
const list = (items: object): object => ({ type: 'array', items, 'x-kubernetes-list-type': 'atomic' });
const map = (properties: object, more: object = {}): object => ({ type: 'object', properties, ...more });
const named = { name: string, namespace: string, port: integer };
const group = 'gateway.networking.k8s.io';

const path = map(
  { type: text('PathPrefix'), value: text('/') },
  { default: { type: 'PathPrefix', value: '/' } },
);
const backendRef = { ...named, group: text(''), kind: text('Service'), weight: { ...integer, default: 1 } };
const rule = { matches: list(map({ path })), backendRefs: list(map(backendRef, { required: ['name'] })) };
const parentRef = { ...named, group: text(group), kind: text('Gateway'), sectionName: string };
const spec = {
  hostnames: list(string),
  parentRefs: list(map(parentRef, { required: ['name'] })),
  rules: list(map(rule)),
};
const status = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
const schema = { openAPIV3Schema: map({ spec: map(spec), status }) };

export const httpRouteCrd = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: {
    name: `httproutes.${group}`,
    // Nobody may define a kind of this group without it.
    annotations: { 'api-approved.kubernetes.io': 'https://github.com/kubernetes-sigs/gateway-api/pull/891' },
  },
  spec: {
    ...{ group, scope: 'Namespaced' },
    names: { kind: 'HTTPRoute', listKind: 'HTTPRouteList', plural: 'httproutes', singular: 'httproute' },
    versions: [{ name: 'v1', served: true, storage: true, subresources: { status: {} }, schema }],
  },
};
