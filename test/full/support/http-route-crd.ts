/**
 * HTTPRoute as the Gateway API defines it, as far as an AppService uses it: with the defaults and the kinds of lists
 * that decide who owns what.
 * @see https://gateway-api.sigs.k8s.io/reference/spec/#httproute
 */
const string = { type: 'string' };
const integer = { type: 'integer', format: 'int32' };

const atomicList = (items: object): object => ({
  type: 'array',
  items,
  'x-kubernetes-list-type': 'atomic',
});
const map = (properties: object, required: readonly string[] = []): object => ({
  type: 'object',
  properties,
  ...(required.length > 0 && { required }),
});

const parentRef = map(
  {
    group: { ...string, default: 'gateway.networking.k8s.io' },
    kind: { ...string, default: 'Gateway' },
    name: string,
    namespace: string,
    sectionName: string,
    port: integer,
  },
  ['name'],
);

const backendRef = map(
  {
    group: { ...string, default: '' },
    kind: { ...string, default: 'Service' },
    name: string,
    namespace: string,
    port: integer,
    weight: { ...integer, default: 1 },
  },
  ['name'],
);

const match = map({
  path: {
    ...map({
      type: { ...string, default: 'PathPrefix' },
      value: { ...string, default: '/' },
    }),
    default: { type: 'PathPrefix', value: '/' },
  },
});

const rule = map({ matches: atomicList(match), backendRefs: atomicList(backendRef) });

const anything = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };

export const httpRouteCrd = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: {
    name: 'httproutes.gateway.networking.k8s.io',
    // Nobody may define a kind of this group without it.
    annotations: { 'api-approved.kubernetes.io': 'https://github.com/kubernetes-sigs/gateway-api/pull/891' },
  },
  spec: {
    group: 'gateway.networking.k8s.io',
    scope: 'Namespaced',
    names: { kind: 'HTTPRoute', listKind: 'HTTPRouteList', plural: 'httproutes', singular: 'httproute' },
    versions: [
      {
        ...{ name: 'v1', served: true, storage: true, subresources: { status: {} } },
        schema: {
          openAPIV3Schema: map({
            spec: map({
              hostnames: atomicList(string),
              parentRefs: atomicList(parentRef),
              rules: atomicList(rule),
            }),
            status: anything,
          }),
        },
      },
    ],
  },
};
