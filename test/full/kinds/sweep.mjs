// @ts-check
import { crdOf } from './share.mjs';

/** @typedef {any} Loose objects whose fields a test kind needn't spell out */

const CONFIG_MAP = { apiVersion: 'v1', kind: 'ConfigMap', plural: 'configmaps', namespaced: true };
const TYPE = { apiVersion: 'sweep.example.com/v1', kind: 'Sweep', plural: 'sweeps', namespaced: true };

/** @type {import('reconstruct').Controller} */
const controller = {
  name: 'sweep',
  kind: 'Sweep',
  metrics: [
    { type: 'counter', name: 'demo_swept_total', help: 'ConfigMaps that were swept', labels: ['action'] },
  ],
  watches: [
    { type: TYPE, keep: (object) => object, writes: ['status'], mapsTo: () => ['all'] },
    {
      ...{
        type: CONFIG_MAP,
        selector: 'sweep.example.com/expired',
        readOnly: true,
        writes: ['delete'],
        mapsTo: () => ['all'],
      },
      keep: ({ apiVersion, kind, metadata: { namespace, name, uid, resourceVersion } }) => ({
        ...{ apiVersion, kind },
        metadata: {
          name,
          ...(namespace && { namespace }),
          ...(uid && { uid }),
          ...(resourceVersion && { resourceVersion }),
        },
      }),
    },
  ],
  reconcile(key, reader) {
    const sweeps = /** @type {Loose[]} */ (reader.mappedTo(TYPE, key));
    const expired = sweeps.length === 0 ? [] : reader.mappedTo(CONFIG_MAP, key);
    return {
      apply: [],
      delete: [],
      sweep: {
        deletesPerSecond: 20,
        steps: expired.map((object) => ({
          object,
          announce: { type: 'Normal', reason: 'Expired', action: 'Sweep', note: 'It has expired' },
          audit: { sweptBy: sweeps[0].metadata.name },
        })),
      },
      status: sweeps.map((target) => ({
        ...{ target, fieldManager: 'sweep-status' },
        status: (changes) => ({
          left: reader.mappedTo(CONFIG_MAP, key).length,
          refused: [...new Set(changes.flatMap(({ error }) => error?.reason ?? []))],
          clockIsKnown: reader.clockSkewMilliseconds !== undefined,
        }),
      })),
      events: [],
      samples: (changes) =>
        changes.map(({ action }) => ({ metric: 'demo_swept_total', labels: { action }, value: 1 })),
    };
  },
};

/**
 * A Sweep deletes every ConfigMap with the label `sweep.example.com/expired`, whoever made it.
 * @type {import('reconstruct').Kind}
 */
export const sweep = {
  ...{ name: 'sweep', type: TYPE, crd: crdOf('sweep.example.com', 'Sweep') },
  rendering: { together: () => ({ manifests: [] }) },
  controllers: () => [controller],
};

export default { kinds: [sweep] };
