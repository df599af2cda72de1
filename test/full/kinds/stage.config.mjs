// @ts-check
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { defineKind, handOverReplicas, keepReplicas, selectorLabels } from 'reconstruct';

const TYPE = { apiVersion: 'stage.example.com/v1', kind: 'Stage' };

/**
 * Renders a Deployment, and a Backdrop where it is asked for.
 * @typedef {object} StageSpec
 * @property {number} size
 * @property {boolean} [yielded] somebody else says how many replicas there are
 * @property {boolean} [backdrop]
 */
class Stage extends Construct {
  /**
   * @param {Construct} scope
   * @param {string} id
   * @param {import('reconstruct').CustomResourceProps<StageSpec>} props
   */
  constructor(scope, id, { metadata: { name }, spec }) {
    super(scope, id);
    if (spec.backdrop)
      new ApiObject(this, 'Backdrop', {
        ...{ apiVersion: 'scenery.example.com/v1', kind: 'Backdrop', metadata: { name } },
      });
    const labels = selectorLabels(TYPE, name);
    new ApiObject(this, 'Deployment', {
      ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name } },
      spec: {
        ...(!spec.yielded && { replicas: spec.size }),
        selector: { matchLabels: { app: name } },
        template: {
          metadata: { labels: { app: name, ...labels } },
          spec: { containers: [{ name: 'app', image: 'example.com/app:1' }] },
        },
      },
    });
  }
}

/**
 * @param {any} input
 * @returns {any}
 */
function status({ related, failures }) {
  const broken = related.map((/** @type {any} */ pod) => `${pod.metadata.name}: ${pod.reason}`).sort();
  const failed = failures.map((/** @type {any} */ { ref, error }) => `${ref?.kind ?? ''} ${error.reason}`);
  return {
    readiness: { phase: 'ready', reason: 'Set', message: '' },
    fields: { broken, failed },
  };
}

const anything = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };

/**
 * @param {string} group
 * @param {string} kind
 * @returns {any}
 */
function crdOf(group, kind) {
  const singular = kind.toLowerCase();
  const version = { name: 'v1', served: true, storage: true, subresources: { status: {} } };
  const schema = { openAPIV3Schema: { type: 'object', properties: { spec: anything, status: anything } } };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${singular}s.${group}` },
    spec: {
      ...{ group, scope: 'Namespaced', versions: [{ ...version, schema }] },
      names: { kind, listKind: `${kind}List`, plural: `${singular}s`, singular },
    },
  };
}

/** Of the kind that need not be installed. */
export const backdropCrd = crdOf('scenery.example.com', 'Backdrop');

/** A kind for tests: an optional child, a field that is handed over, and Pods that are read. */
export const stage = defineKind({
  crd: crdOf('stage.example.com', 'Stage'),
  construct: Stage,
  children: [
    { apiVersion: 'apps/v1', kind: 'Deployment', keep: keepReplicas },
    { apiVersion: 'scenery.example.com/v1', kind: 'Backdrop', optional: true },
  ],
  related: [
    {
      ...{ apiVersion: 'v1', kind: 'Pod', selector: 'stage.example.com/stage' },
      keep: (pod) => {
        const { reason } = /** @type {{ reason?: string }} */ (pod.status ?? {});
        return reason ? { reason } : undefined;
      },
      nameOf: ({ metadata }) => metadata.labels?.['stage.example.com/stage'],
    },
  ],
  /** @type {import('reconstruct').HandOverFunction<StageSpec>} */
  handOver: ({ cr, children }) =>
    cr.spec.yielded ? handOverReplicas({ cr, children, start: cr.spec.size }) : [],
  status,
});

export default { kinds: [stage] };
