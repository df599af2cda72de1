import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { defineCrd, defineKind, type PropsOf } from 'cdk8s-reconstruct';

const crd = defineCrd({
  group: 'teams.example.com',
  kind: 'Team',
  scope: 'Cluster',
  description: 'A namespace, and who may look into it.',
  spec: {
    type: 'object',
    required: ['members'],
    properties: { members: { type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'string' } } },
  },
});

const rbac = 'rbac.authorization.k8s.io';

class Team extends Construct {
  constructor(scope: Construct, id: string, { metadata: { name }, spec }: PropsOf<typeof crd>) {
    super(scope, id);
    const metadata = { name, namespace: name };
    new ApiObject(this, 'Namespace', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    new ApiObject(this, 'Role', {
      apiVersion: `${rbac}/v1`,
      kind: 'Role',
      metadata,
      rules: [{ apiGroups: [''], resources: ['pods', 'pods/log'], verbs: ['get', 'list', 'watch'] }],
    });
    new ApiObject(this, 'RoleBinding', {
      apiVersion: `${rbac}/v1`,
      kind: 'RoleBinding',
      metadata,
      roleRef: { apiGroup: rbac, kind: 'Role', name },
      subjects: spec.members.map((user) => ({ apiGroup: rbac, kind: 'User', name: user })),
    });
  }
}

export const team = defineKind({
  crd,
  construct: Team,
  children: [
    { apiVersion: 'v1', kind: 'Namespace', namespaced: false },
    { apiVersion: `${rbac}/v1`, kind: 'Role' },
    { apiVersion: `${rbac}/v1`, kind: 'RoleBinding' },
  ],
});
