// @ts-check
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { childLabels, defineKind } from 'reconstruct';

/**
 * @typedef {object} ParcelSpec
 * @property {{ name: string, data?: Record<string, string> }[]} parts a ConfigMap for each
 * @property {boolean} [sealed] makes a Secret besides
 * @property {object} [raw] put into every ConfigMap as it is, so that anything can be sent
 */

const map = (/** @type {object} */ properties) => ({ type: 'object', properties });
const anything = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };

const condition = {
  ...anything,
  required: ['type'],
  properties: { type: { type: 'string' } },
};

/** @param {string} group */
function crdOf(group) {
  const part = {
    ...map({ name: { type: 'string' }, data: { type: 'object', additionalProperties: { type: 'string' } } }),
    required: ['name'],
  };
  const spec = {
    ...map({ parts: { type: 'array', items: part }, sealed: { type: 'boolean' }, raw: anything }),
    required: ['parts'],
  };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `parcels.${group}` },
    spec: {
      group,
      names: { kind: 'Parcel', listKind: 'ParcelList', plural: 'parcels', singular: 'parcel' },
      scope: 'Namespaced',
      versions: [
        {
          ...{ name: 'v1', served: true, storage: true, subresources: { status: {} } },
          schema: {
            openAPIV3Schema: {
              ...map({
                spec,
                status: map({
                  observedGeneration: { type: 'integer', format: 'int64' },
                  conditions: {
                    ...{ type: 'array', items: condition },
                    'x-kubernetes-list-type': 'map',
                    'x-kubernetes-list-map-keys': ['type'],
                  },
                }),
              }),
              required: ['spec'],
            },
          },
        },
      ],
    },
  };
}

/** @param {{ group: string, seals: boolean }} options */
function constructOf({ group, seals }) {
  return class Parcel extends Construct {
    /**
     * @param {Construct} scope
     * @param {string} id
     * @param {import('reconstruct').CustomResourceProps<ParcelSpec>} props
     */
    constructor(scope, id, { metadata: { name }, spec }) {
      super(scope, id);
      const labels = childLabels({ apiVersion: `${group}/v1`, kind: 'Parcel' }, name);
      for (const part of spec.parts) {
        new ApiObject(this, part.name, {
          ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `${name}-${part.name}`, labels } },
          ...(part.data && { data: part.data }),
          ...spec.raw,
        });
      }
      if (seals && spec.sealed) {
        const metadata = { name: `${name}-seal`, labels };
        new ApiObject(this, 'Seal', { apiVersion: 'v1', kind: 'Secret', metadata, data: { seal: 'd2F4' } });
      }
    }
  };
}

/**
 * A kind for tests: ConfigMaps, as many as the spec says, and a Secret; or, after an upgrade, no Secret any more.
 * @param {{ group?: string, upgraded?: boolean }} [options]
 */
export function parcelKind({ group = 'scenarios.example.com', upgraded = false } = {}) {
  const configMap = { apiVersion: 'v1', kind: 'ConfigMap' };
  const secret = { apiVersion: 'v1', kind: 'Secret' };
  return defineKind({
    crd: /** @type {any} */ (crdOf(group)),
    construct: constructOf({ group, seals: !upgraded }),
    children: upgraded ? [configMap] : [configMap, secret],
    formerChildren: upgraded ? [secret] : [],
  });
}
