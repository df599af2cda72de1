// @ts-check
import { defineController, defineCrd, keepIdentity, resourceType } from 'cdk8s-reconstruct';

const crd = defineCrd({
  group: 'pods.example.com',
  kind: 'PodHistory',
  description: 'Keeps the newest finished Pods of its namespace, and deletes the older ones.',
  spec: /** @type {const} */ ({
    type: 'object',
    properties: {
      labels: {
        type: 'object',
        additionalProperties: { type: 'string' },
        description: 'Labels of the Pods.',
      },
      phase: {
        type: 'string',
        enum: ['Failed', 'Succeeded'],
        default: 'Failed',
        description: 'How they ended.',
      },
      keep: { type: 'integer', minimum: 0, default: 3, description: 'Number of Pods that are kept.' },
    },
  }),
  status: { pods: { type: 'integer', description: 'Number of Pods that are left.' } },
  columns: [{ name: 'Pods', type: 'integer', jsonPath: '.status.pods' }],
});

const POD = resourceType({ apiVersion: 'v1', kind: 'Pod' });

/** @typedef {import('cdk8s-reconstruct').AnyObject} AnyObject */
/** @typedef {AnyObject & { phase: string, created: string, labels: Record<string, string> }} Finished */

/** @param {Finished} a @param {Finished} b */
const newestFirst = (a, b) =>
  b.created.localeCompare(a.created) || b.metadata.name.localeCompare(a.metadata.name);

export const podHistory = defineController({
  crd,
  does: 'deletes finished Pods',
  // A change of a Pod plans for every PodHistory of its namespace.
  keyOf: ({ metadata }) => metadata.namespace ?? '',
  watches: [
    {
      ...{ type: POD, writes: ['delete'] },
      // Pods that run aren't kept in memory.
      keep: (object) => {
        const pod = /** @type {import('cdk8s-reconstruct').ObjectOf<'v1', 'Pod'>} */ (object);
        const { phase } = pod.status ?? {};
        if (phase !== 'Failed' && phase !== 'Succeeded') return undefined;
        const { creationTimestamp: created = '', labels = {} } = pod.metadata;
        return { ...keepIdentity(pod), phase, created, labels };
      },
    },
  ],
  plan: ({ cr, key, reader }) => {
    const { labels = {}, phase, keep } = cr.spec;
    const chosen = () =>
      /** @type {readonly Finished[]} */ (reader.mappedTo(POD, key)).filter(
        (pod) =>
          pod.phase === phase &&
          pod.metadata.deletionTimestamp === undefined &&
          Object.entries(labels).every(([name, value]) => pod.labels[name] === value),
      );
    const older = chosen().sort(newestFirst).slice(keep);
    return {
      steps: older.map((object) => ({ do: 'prune', object })),
      status: () => {
        const pods = chosen().length;
        const message = `${pods} Pods with the phase ${phase} are left`;
        return { readiness: { phase: 'ready', reason: 'Trimmed', message }, fields: { pods } };
      },
    };
  },
});
