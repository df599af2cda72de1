// @ts-check
import { keepStatus } from 'reconstruct';

/** @typedef {import('reconstruct').AnyObject} AnyObject */
/** @typedef {any} Loose objects whose fields a test kind needn't spell out */

const anything = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };

/**
 * @param {string} group
 * @param {string} kind
 * @returns {any}
 */
export function crdOf(group, kind) {
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

const CONFIG_MAP = { apiVersion: 'v1', kind: 'ConfigMap', plural: 'configmaps', namespaced: true };
const SERVICE = { apiVersion: 'v1', kind: 'Service', plural: 'services', namespaced: true };
const MANAGER = 'share-controller';

/**
 * Fields of others below a path, by their segments in `fieldsV1`.
 * @param {Loose} object
 * @param {string[]} path
 * @returns {string[]}
 */
function othersBelow(object, ...path) {
  const entries = (object.metadata.managedFields ?? []).filter(
    (/** @type {Loose} */ { manager }) => manager !== MANAGER,
  );
  return entries.flatMap((/** @type {Loose} */ { fieldsV1 }) =>
    Object.keys(path.reduce((at, step) => at?.[step], fieldsV1) ?? {}),
  );
}

/**
 * Many Shares contribute to one ConfigMap, and to a Service that somebody else has to make.
 *
 * - `spec: { key, port }`: an entry of the ConfigMap `entries` with the name of the Share as its value, and a port of the
 *   Service `front`; both in the namespace of the target.
 * - `status: { got, why }`
 *
 * @param {{ group: string, namespace: string }} options
 * @returns {import('reconstruct').Kind}
 */
export function shareKind({ group, namespace }) {
  const crd = crdOf(group, 'Share');
  const type = { apiVersion: `${group}/v1`, kind: 'Share', plural: 'shares', namespaced: true };
  const keep = (/** @type {AnyObject} */ object) => ({
    ...keepStatus(object),
    others: [
      ...othersBelow(object, 'f:data').map((segment) => segment.replace('f:', '')),
      ...othersBelow(object, 'f:spec', 'f:ports'),
    ],
  });
  const named =
    (/** @type {string} */ name) =>
    (/** @type {AnyObject} */ { metadata }) =>
      metadata.name === name ? ['target'] : [];
  /** @type {import('reconstruct').Controller} */
  const controller = {
    name: 'share',
    kind: 'Share',
    settle: { quietMilliseconds: 200, longestMilliseconds: 1_000 },
    metrics: [
      { type: 'gauge', name: `demo_shares_${group.replaceAll('.', '_')}`, help: 'Shares that there are' },
    ],
    watches: [
      { type, keep: (object) => object, writes: ['status'], mapsTo: () => ['target'] },
      {
        ...{ type: CONFIG_MAP, namespaces: [namespace], keep, mapsTo: named('entries') },
        writes: ['create', 'patch'],
      },
      {
        type: SERVICE,
        namespaces: [namespace],
        name: 'front',
        keep,
        writes: ['patch'],
        mapsTo: named('front'),
      },
    ],
    reconcile(key, reader) {
      // They come in no order, and the hash of what is applied has one.
      const shares = [.../** @type {Loose[]} */ (reader.mappedTo(type, key))].sort((a, b) =>
        a.metadata.name < b.metadata.name ? -1 : 1,
      );
      const [entries, front] = [
        reader.get(CONFIG_MAP, `${namespace}/entries`),
        reader.get(SERVICE, `${namespace}/front`),
      ].map((object) => /** @type {string[]} */ (object?.others ?? []));
      const portKey = (/** @type {Loose} */ { spec }) => `k:{"port":${spec.port},"protocol":"TCP"}`;
      const free = shares.filter(
        (share) => !entries?.includes(share.spec.key) && !front?.includes(portKey(share)),
      );
      /** @param {Loose[]} of */
      const configMap = (of) => ({
        ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace, name: 'entries' } },
        ...(of.length > 0 && {
          data: Object.fromEntries(of.map((share) => [share.spec.key, share.metadata.name])),
        }),
      });
      /** @param {Loose[]} of */
      const service = (of) => ({
        ...{ apiVersion: 'v1', kind: 'Service', metadata: { namespace, name: 'front' } },
        ...(of.length > 0 && {
          spec: {
            ports: of.map(({ spec: { port } }) => ({
              name: `s-${port}`,
              port,
              protocol: 'TCP',
              targetPort: port,
            })),
          },
        }),
      });
      /** @param {readonly import('reconstruct').FieldConflict[]} conflicts */
      const left = (conflicts) =>
        free.filter((share) => !conflicts.some(({ field }) => field === `.data.${share.spec.key}`));
      return {
        apply: [
          {
            object: configMap(free),
            fieldManager: MANAGER,
            shared: { onConflict: (conflicts) => configMap(left(conflicts)) },
          },
          {
            object: service(free),
            fieldManager: MANAGER,
            shared: { mustExist: true, revise: ([change]) => service(left(change?.conflicts ?? [])) },
          },
        ],
        delete: [],
        status: shares.map((share) => ({
          target: share,
          fieldManager: 'share-status',
          status: ([map, service]) => {
            const conflict = map?.conflicts?.find(({ field }) => field === `.data.${share.spec.key}`);
            if (conflict) return { got: false, why: `held by ${conflict.manager}` };
            if (!free.includes(share)) return { got: false, why: 'held by others' };
            const failed = map?.error ?? service?.error;
            return failed ? { got: false, why: failed.reason } : { got: true, why: '' };
          },
        })),
        events: [],
        samples: () => [{ metric: `demo_shares_${group.replaceAll('.', '_')}`, value: shares.length }],
      };
    },
  };
  return {
    name: 'share',
    type,
    crd,
    rendering: { together: () => ({ manifests: [] }) },
    controllers: () => [controller],
  };
}
