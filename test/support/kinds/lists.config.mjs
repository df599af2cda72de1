// @ts-check
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { defineCrd, defineKind } from 'cdk8s-reconstruct';

const crd = defineCrd({
  ...{ group: 'test.example.com', kind: 'Collage', description: 'A ConfigMap with the names of others.' },
  spec: /** @type {const} */ ({
    type: 'object',
    properties: {
      parts: { type: 'array', items: { type: 'string' }, default: [] },
      tiers: { type: 'array', items: { type: 'string' }, default: [] },
    },
  }),
  status: /** @type {const} */ ({
    missing: { type: 'array', items: { type: 'string' }, description: 'Parts that are not there.' },
  }),
});

const references = /** @type {const} */ ({
  parts: { apiVersion: 'v1', kind: 'ConfigMap', optional: true, names: (cr) => cr.spec.parts },
  peers: {
    ...{ apiVersion: 'v1', kind: 'ConfigMap' },
    selector: (cr) =>
      cr.spec.tiers.length > 0
        ? { matchExpressions: [{ key: 'tier', operator: 'In', values: cr.spec.tiers }] }
        : undefined,
  },
  zones: { apiVersion: 'v1', kind: 'ServiceAccount', all: true, namespace: 'collage-zones' },
});

class Collage extends Construct {
  /**
   * @param {Construct} scope
   * @param {string} id
   * @param {any} props
   */
  constructor(scope, id, { metadata: { name }, references }) {
    super(scope, id);
    /** @type {Record<string, string>} */
    const data = {};
    for (const [key, found] of Object.entries(references))
      data[key] = found.map((/** @type {any} */ { metadata }) => metadata.name).join();
    new ApiObject(this, 'Config', { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data });
  }
}

export const collage = defineKind({
  ...{ crd, references: /** @type {any} */ (references), construct: /** @type {any} */ (Collage) },
  children: [{ apiVersion: 'v1', kind: 'ConfigMap' }],
  status: ({ cr, references: { parts } = /** @type {any} */ ({ parts: [] }) }) => {
    const found = new Set(parts.map((/** @type {any} */ { metadata }) => metadata.name));
    return { fields: { missing: cr.spec.parts.filter((part) => !found.has(part)) } };
  },
});

export default { kinds: [collage] };
