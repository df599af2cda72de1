// @ts-check
// A kind that does nothing but refer to a ConfigMap.
import { Construct } from 'constructs';
import { defineCrd, defineKind } from 'cdk8s-reconstruct';

const crd = defineCrd({
  ...{ group: 'bench.example.com', kind: 'Reading', description: 'Reads a ConfigMap.' },
  spec: /** @type {const} */ ({
    type: 'object',
    required: ['from'],
    properties: { from: { type: 'string' } },
  }),
});

const references = /** @type {const} */ ({
  source: { apiVersion: 'v1', kind: 'ConfigMap', name: (/** @type {any} */ cr) => cr.spec.from },
});

export const reading = defineKind({
  crd,
  references,
  construct: /** @type {any} */ (Construct),
  children: [],
});

export default { kinds: [reading] };
