// @ts-check
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { defineCrd, defineKind } from 'cdk8s-reconstruct';

const crd = defineCrd({
  ...{
    group: 'test.example.com',
    kind: 'Tenant',
    description: 'ConfigMaps here and elsewhere, and a ClusterRole.',
  },
  spec: /** @type {const} */ ({
    type: 'object',
    properties: {
      /** Name of the ConfigMap elsewhere. */
      shared: { type: 'string' },
      namespace: { type: 'string', default: 'elsewhere-shared' },
      value: { type: 'string', default: 'a' },
      role: { type: 'string' },
    },
  }),
});

class Tenant extends Construct {
  /**
   * @param {Construct} scope
   * @param {string} id
   * @param {import('cdk8s-reconstruct').PropsOf<typeof crd, {}>} props
   */
  constructor(scope, id, { metadata: { name }, spec: { shared, namespace, value, role } }) {
    super(scope, id);
    const data = { value };
    new ApiObject(this, 'Here', { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data });
    if (shared)
      new ApiObject(this, 'There', {
        ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: shared, namespace }, data },
      });
    if (role)
      new ApiObject(this, 'Role', {
        ...{ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name: role } },
        rules: [],
      });
  }
}

export const tenant = defineKind({
  ...{ crd, construct: Tenant },
  children: [
    { apiVersion: 'v1', kind: 'ConfigMap', namespaces: ['elsewhere-shared', 'elsewhere-later'] },
    { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', namespaced: false },
  ],
});

export default { kinds: [tenant] };
