import { readSamples, sweepCommand } from 'cdk8s-reconstruct/testing';
import { rabbitmq } from './kind.ts';
await sweepCommand(
  rabbitmq,
  async () => {
    const [sample] = await readSamples(rabbitmq, new URL('sample.yaml', import.meta.url));
    return [
      sample,
      { ...sample, spec: { ...sample.spec, rabbitmq: { additionalConfig: 'log.console.level = debug' } } },
    ];
  },
  {
    surroundings: ({ namespace }) => ({
      objects: [
        {
          apiVersion: 'rbac.authorization.k8s.io/v1',
          kind: 'RoleBinding',
          metadata: { name: 'grants', namespace },
          roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
          subjects: [
            { apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'system:serviceaccounts' },
          ],
        },
      ],
    }),
  },
);
