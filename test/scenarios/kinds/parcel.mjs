// @ts-check
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { childLabels, defineCrd, defineKind } from 'reconstruct';

/**
 * @typedef {object} ParcelSpec
 * @property {{ name: string, data?: Record<string, string> }[]} parts a ConfigMap for each
 * @property {boolean} [sealed] makes a Secret besides
 * @property {object} [raw] put into every ConfigMap as it is, so that anything can be sent
 */

/** @param {string} group */
const crdOf = (group) =>
  defineCrd({
    group,
    kind: 'Parcel',
    description: 'ConfigMaps, and a Secret.',
    spec: {
      type: 'object',
      required: ['parts'],
      properties: {
        parts: {
          type: 'array',
          items: {
            type: 'object',
            required: ['name'],
            properties: {
              name: { type: 'string' },
              data: { type: 'object', additionalProperties: { type: 'string' } },
            },
          },
        },
        sealed: { type: 'boolean' },
        raw: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
      },
    },
  });

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
    crd: crdOf(group),
    construct: constructOf({ group, seals: !upgraded }),
    children: upgraded ? [configMap] : [configMap, secret],
    formerChildren: upgraded ? [secret] : [],
  });
}
