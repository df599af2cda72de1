import { defineCrd, type PropsOf } from 'cdk8s-reconstruct';

export type AppProps = PropsOf<typeof crd>;

export const crd = defineCrd({
  group: 'apps.example.com',
  kind: 'App',
  description: 'A web application with a database and keys from the vault.',
  rules: [
    {
      rule: "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$') && self.metadata.name.size() <= 50",
      message:
        'the name is that of a CloudNativePG Cluster; use lower-case letters, digits and "-", at most 50, with a letter first',
    },
  ],
  spec: {
    type: 'object',
    required: ['image'],
    properties: {
      image: { type: 'string', minLength: 1, description: 'Image of the application.' },
      replicas: { type: 'integer', minimum: 0, default: 2, description: 'Number of its Pods.' },
      storage: {
        type: 'string',
        pattern: '^[1-9][0-9]*(Mi|Gi|Ti)$',
        default: '10Gi',
        description: 'Size of the volume of each PostgreSQL.',
      },
    },
  },
});
