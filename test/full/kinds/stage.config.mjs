// @ts-check
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { crdOf } from './share.mjs';
import { defineKind, handOverReplicas, keepReplicas, selectorLabels } from 'reconstruct';

const TYPE = { apiVersion: 'stage.example.com/v1', kind: 'Stage' };

/**
 * Renders a Deployment.
 * @typedef {object} StageSpec
 * @property {number} size
 * @property {boolean} [yielded] somebody else says how many replicas there are
 */
class Stage extends Construct {
  /**
   * @param {Construct} scope
   * @param {string} id
   * @param {import('reconstruct').CustomResourceProps<StageSpec>} props
   */
  constructor(scope, id, { metadata: { name }, spec }) {
    super(scope, id);
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

/** A kind for tests: a field that is handed over. */
export const stage = defineKind({
  crd: crdOf('stage.example.com', 'Stage'),
  construct: Stage,
  children: [{ apiVersion: 'apps/v1', kind: 'Deployment', keep: keepReplicas }],
  /** @type {import('reconstruct').HandOverFunction<StageSpec>} */
  handOver: ({ cr, children }) =>
    cr.spec.yielded ? handOverReplicas({ cr, children, start: cr.spec.size }) : [],
  status: () => ({ readiness: { phase: 'ready', reason: 'Set', message: '' } }),
});

export default { kinds: [stage] };
