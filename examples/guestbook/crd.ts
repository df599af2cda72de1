import { defineCrd } from 'cdk8s-reconstruct';

export const crd = defineCrd({
  group: 'web.example.com',
  kind: 'Guestbook',
  description: 'A guestbook.',
  spec: {
    type: 'object',
    required: ['image'],
    properties: {
      image: { type: 'string', minLength: 1, description: 'The container image.' },
      replicas: {
        type: 'integer',
        format: 'int32',
        minimum: 0,
        default: 1,
        description: 'How many pods run.',
      },
    },
  },
});
