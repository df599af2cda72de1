import { defineCrd } from 'cdk8s-reconstruct';
import type { PropsOf, SpecOf } from 'cdk8s-reconstruct';

export type EventBusSpec = SpecOf<typeof crd>;
export type EventBusProps = PropsOf<typeof crd>;

export const crd = defineCrd({
  group: 'events.example.com',
  kind: 'EventBus',
  plural: 'eventbuses',
  shortNames: ['bus'],
  description:
    'A message bus that keeps what it is given: NATS servers with JetStream, and a volume for each.',
  rules: [
    {
      rule: "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$') && self.metadata.name.size() <= 52",
      message:
        'the name is part of names of pods and Services; use lower-case letters, digits and "-", at most 52, with a letter first',
    },
    {
      rule: "!self.metadata.name.endsWith('-peers')",
      message: 'another bus may have a Service of that name; choose one that doesn\'t end with "-peers"',
    },
  ],
  spec: {
    type: 'object',
    description: 'What the bus is like.',
    // So that an empty spec is enough.
    default: {},
    properties: {
      replicas: {
        type: 'integer',
        format: 'int32',
        enum: [1, 3, 5],
        default: 3,
        description:
          'How many servers there are. One has no other to take over; of three one may fail, of five two.',
        'x-kubernetes-validations': [
          {
            rule: 'self == oldSelf || (oldSelf > 1 && self > oldSelf)',
            message:
              'a bus of one would lose its streams as it becomes several, and servers that go leave the rest without a majority; make another bus, and copy the streams',
          },
        ],
      },
      image: {
        type: 'string',
        minLength: 1,
        default: 'nats:2.11.4-alpine',
        description: 'The image of the servers.',
      },
      memoryMiB: {
        type: 'integer',
        format: 'int32',
        minimum: 64,
        default: 256,
        description: 'The memory of each server, in MiB.',
      },
      maxPayloadKiB: {
        type: 'integer',
        format: 'int32',
        minimum: 1,
        maximum: 65536,
        default: 1024,
        description: 'How large a message may be, in KiB.',
      },
      debug: {
        type: 'boolean',
        default: false,
        description: 'Whether the servers log what they do.',
      },
      tokenSecret: {
        type: 'string',
        minLength: 1,
        maxLength: 253,
        description:
          'The Secret whose key "token" clients have to know. Without one, every pod of the cluster may connect.',
      },
      storage: {
        type: 'object',
        description: 'The volume of each server.',
        default: { size: '10Gi' },
        'x-kubernetes-validations': [
          {
            rule: 'self == oldSelf',
            message:
              'the volumes of a StatefulSet stay as they were made; make another bus, and copy the streams',
          },
        ],
        properties: {
          size: {
            type: 'string',
            pattern: '^[1-9][0-9]*(Mi|Gi|Ti)$',
            default: '10Gi',
            description: 'How large it is, e.g. "10Gi".',
          },
          className: {
            type: 'string',
            minLength: 1,
            description: "Its StorageClass. The default is the cluster's own.",
          },
        },
      },
      whenDeleted: {
        type: 'string',
        enum: ['Retain', 'Delete'],
        default: 'Retain',
        description:
          'What becomes of the volumes when this object is deleted. A new bus of the same name finds those that were retained.',
      },
    },
  },
  status: {
    replicas: { type: 'integer', format: 'int32', description: 'How many servers there are.' },
    readyReplicas: { type: 'integer', format: 'int32', description: 'How many of them are ready.' },
    updatedReplicas: {
      type: 'integer',
      format: 'int32',
      description: 'How many of them run with the present settings.',
    },
  },
  columns: [
    { name: 'Replicas', type: 'integer', jsonPath: '.spec.replicas' },
    { name: 'Updated', type: 'integer', jsonPath: '.status.updatedReplicas' },
    { name: 'Storage', type: 'string', jsonPath: '.spec.storage.size' },
  ],
});
