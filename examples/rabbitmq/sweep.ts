import { readSamples, sweepCommand } from 'cdk8s-reconstruct/testing';
import { rabbitmq } from './kind.ts';

await sweepCommand(
  rabbitmq,
  async () => {
    const [sample] = await readSamples(rabbitmq, new URL('sample.yaml', import.meta.url));
    const spec = { ...sample.spec, replicas: 2 };
    const other = {
      tls: { secretName: 'server' },
      rabbitmq: { additionalConfig: 'log.console.level = debug' },
    };
    return [spec, { ...spec, ...other }].map((one) => ({ ...sample, spec: one }));
  },
  {
    surroundings: ({ namespace }) => ({
      objects: [
        {
          ...{ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'RoleBinding' },
          metadata: { name: 'grants', namespace },
          roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
          subjects: [
            { apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'system:serviceaccounts' },
          ],
        },
        {
          ...{ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'server', namespace } },
          data: { 'tls.crt': 'YQ==', 'tls.key': 'Yg==' },
        },
      ],
    }),
    // Other Secrets and volumes aren't there.
    notWalked: ['tls', 'persistence'],
  },
);
