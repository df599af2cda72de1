// @ts-check
import { childReadiness, defineKind } from 'cdk8s-reconstruct';
import { PortRule } from './port-rule.mjs';

/**
 * What the status holds besides `observedGeneration` and `conditions`.
 * @typedef {object} PortRuleStatus
 * @property {string} table
 */

const text = /** @type {const} */ ({ type: 'string', minLength: 1 });

const owned = defineKind({
  crd: new URL('./portrules.firewalld.fedoraproject.org.yaml', import.meta.url),
  construct: PortRule,
  children: [{ apiVersion: 'apps/v1', kind: 'DaemonSet' }],
  policySchema: {
    type: 'object',
    properties: {
      image: { ...text, description: 'The image that has nft, sh, grep and sleep.' },
      priorityClassName: { ...text, description: 'The PriorityClass of the pods.' },
    },
  },
  status,
});

/** Whoever may write a PortRule opens ports of nodes, so that is for those who administer a namespace. */
export const portRule = { ...owned, writers: /** @type {const} */ ('admin') };

/**
 * @param {import('cdk8s-reconstruct').StatusInput<import('./port-rule.mjs').PortRuleSpec, PortRuleStatus>} input
 * @returns {import('cdk8s-reconstruct').StatusReport<PortRuleStatus>}
 */
function status({ cr, children }) {
  const { namespace, name } = cr.metadata;
  return { readiness: readiness(cr.spec, children[0]), fields: { table: `portrule_${namespace}_${name}` } };
}

/**
 * @param {import('./port-rule.mjs').PortRuleSpec} spec
 * @param {import('cdk8s-reconstruct').AnyObject} [daemonSet]
 * @returns {import('cdk8s-reconstruct').Readiness}
 */
function readiness({ port, protocol, host, isPermanent }, daemonSet) {
  const where = `${protocol} port ${port} of node ${host}`;
  const rollout = daemonSet && childReadiness(daemonSet);
  if (!rollout || rollout.phase === 'progressing')
    return { phase: 'progressing', reason: 'Opening', message: `${where} is being opened` };
  if (rollout.phase !== 'ready') return rollout;
  /** @type {{ desiredNumberScheduled?: number }} */
  const { desiredNumberScheduled } = daemonSet.status ?? {};
  // Only the node's name keeps the pod from anywhere. It is looked for again when a node joins.
  if (!desiredNumberScheduled)
    return { phase: 'failing', reason: 'NoSuchNode', message: `There is no node ${host}` };
  const until = isPermanent ? ', and stays so until the node restarts, whoever deletes this object' : '';
  return { phase: 'ready', reason: 'Open', message: `${where} is open${until}` };
}
