// @ts-check
import { defineCrd } from 'cdk8s-reconstruct';
import { share as handler } from '../../../lib/engine/steps/share.js';

const CONFIG_MAP = { apiVersion: 'v1', kind: 'ConfigMap', plural: 'configmaps', namespaced: true };
const SHARE = { apiVersion: 'share.example.com/v1', kind: 'Share', plural: 'shares', namespaced: true };

const mapsTo = (/** @type {import('cdk8s-reconstruct').AnyObject} */ { metadata }) => [
  metadata.namespace ?? '',
];

/** The ConfigMap from which a Share takes its value. */
const sourceOf = (/** @type {import('cdk8s-reconstruct').AnyObject} */ { metadata, spec }) =>
  `${metadata.namespace}/${/** @type {{ from?: string }} */ (spec).from}`;

/** @type {import('cdk8s-reconstruct').Controller} */
const controller = {
  name: 'share',
  kind: 'Share',
  handlers: [handler],
  watches: [
    { type: SHARE, keep: (share) => share, mapsTo },
    { type: CONFIG_MAP, name: 'entries', writes: ['patch'], mapsTo },
    {
      ...{ type: CONFIG_MAP, readOnly: true, keep: (source) => source, mapsTo: () => [] },
      concerns: ({ metadata }, share) => sourceOf(share) === `${metadata.namespace}/${metadata.name}`,
    },
  ],
  reconcile(namespace, reader) {
    const shares = reader.mappedTo(SHARE, namespace);
    const keys = shares.map(({ metadata }) => metadata.name);
    const valueOf = (/** @type {string} */ key) => {
      const share = shares.find(({ metadata }) => metadata.name === key);
      const source = share && reader.get(CONFIG_MAP, sourceOf(share));
      return /** @type {{ data?: { value?: string } } | undefined} */ (source)?.data?.value ?? 'ours';
    };
    const withKeys = (/** @type {readonly string[]} */ all) => ({
      ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace, name: 'entries' } },
      data: Object.fromEntries(all.map((key) => [key, valueOf(key)])),
    });
    /** @type {import('../../../lib/engine/steps/share.js').ShareStep} */
    const step = {
      ...{ do: 'engine/share', object: withKeys(keys), fieldManager: 'share-controller' },
      onConflict: (conflicts) =>
        withKeys(keys.filter((key) => !conflicts.some(({ field }) => field === `.data.${key}`))),
    };
    return { steps: [step], conclude: () => ({ status: [], events: [] }) };
  },
};

/** The Shares of a namespace have a key each in one ConfigMap, in which others have keys too. */
const share = {
  ...{ name: 'share', type: SHARE },
  crd: defineCrd({
    ...{ group: 'share.example.com', kind: 'Share', description: 'A key of a shared ConfigMap.' },
    spec: { type: 'object', properties: { from: { type: 'string' } } },
  }),
  rendering: { together: () => ({ manifests: [] }) },
  controllers: () => [controller],
};

export default { kinds: [share] };
