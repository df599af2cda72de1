import type { StructuralSchema } from './crd.js';

/** What the operator writes into the status of every kind. */
const OPERATORS_OWN = {
  observedGeneration: {
    type: 'integer',
    format: 'int64',
    description:
      'The generation of this object that the status speaks of; -1 before the operator has seen it.',
  },
  conditions: {
    type: 'array',
    description: 'How this object fares, as Ready, Reconciling and Stalled.',
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['type'],
    items: {
      type: 'object',
      description: 'One aspect of how this object fares.',
      required: ['type', 'status', 'reason', 'message', 'lastTransitionTime'],
      properties: {
        type: { type: 'string', description: 'The aspect, in CamelCase.' },
        status: { type: 'string', enum: ['True', 'False', 'Unknown'], description: 'Whether it holds.' },
        reason: { type: 'string', description: 'Why, in one word in CamelCase.' },
        message: { type: 'string', description: 'Why, in a sentence.' },
        lastTransitionTime: {
          type: 'string',
          format: 'date-time',
          description: "When the condition's status last changed.",
        },
        observedGeneration: {
          type: 'integer',
          format: 'int64',
          description: 'The generation of this object that the condition speaks of.',
        },
      },
    },
  },
} as const satisfies Readonly<Record<string, StructuralSchema>>;

/** The names of what the operator writes into the status of every kind. */
export const OWN_STATUS: readonly string[] = Object.keys(OPERATORS_OWN);

/** The schema of a status. @param properties what it has beside what the operator writes for every kind */
export function statusSchema(properties: Readonly<Record<string, StructuralSchema>>): StructuralSchema {
  const { observedGeneration, conditions } = OPERATORS_OWN;
  return {
    type: 'object',
    description: 'How this object fares. Written by the operator.',
    // Until the operator has seen the object, this keeps tools from reading it as finished.
    default: { observedGeneration: -1 },
    properties: { observedGeneration, ...properties, conditions },
  };
}
