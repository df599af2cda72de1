// @ts-check
import { readFileSync } from 'node:fs';
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { selectorLabels } from 'cdk8s-reconstruct';

/**
 * The spec as the CRD has it.
 * @typedef {object} PortRuleSpec
 * @property {string} name
 * @property {number} port
 * @property {'TCP' | 'UDP' | 'SCTP'} protocol
 * @property {string} host
 * @property {boolean} isPermanent
 */

/**
 * What an admin decides for all PortRules, in the policy of the operator.
 * @typedef {object} PortRulePolicy
 * @property {string} [image]
 * @property {string} [priorityClassName]
 */

const TYPE = { apiVersion: 'firewalld.fedoraproject.org/v1', kind: 'PortRule' };
/** Kubernetes' own image for whoever writes packet filters, such as kube-proxy: nft, a shell, and little else. */
const IMAGE = 'registry.k8s.io/build-image/distroless-iptables:v0.8.7';
/** The bit of a packet's mark by which the node's own ruleset knows what it is to let in. */
const MARK = '0x10';
const SCRIPT = readFileSync(new URL('./open-port.sh', import.meta.url), 'utf8');
const IS_OPEN = 'nft list chain inet "$TABLE" "$CHAIN" | grep -q "$PROTOCOL dport $PORT "';

/** A port that is open on one node: a DaemonSet that runs there alone, and writes one rule into nftables. */
export class PortRule extends Construct {
  /**
   * @param {Construct} scope
   * @param {string} id
   * @param {import('cdk8s-reconstruct').CustomResourceProps<PortRuleSpec>} props
   */
  constructor(scope, id, { metadata: { name }, spec, policy }) {
    super(scope, id);
    const labels = selectorLabels(TYPE, name);
    this.node.defaultChild = new ApiObject(this, 'DaemonSet', {
      apiVersion: 'apps/v1',
      kind: 'DaemonSet',
      metadata: { name },
      spec: {
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: podSpec(name, spec, /** @type {PortRulePolicy | undefined} */ (policy) ?? {}),
        },
      },
    });
  }
}

/**
 * @param {string} name
 * @param {PortRuleSpec} spec
 * @param {PortRulePolicy} policy
 */
function podSpec(name, spec, { image = IMAGE, priorityClassName }) {
  return {
    // The ruleset that counts is the one of the node's network namespace.
    hostNetwork: true,
    affinity: { nodeAffinity: onNode(spec.host) },
    // The user has named the node: a taint that keeps workloads away, or drives them out, isn't about its firewall.
    tolerations: [{ operator: 'Exists' }],
    priorityClassName,
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    terminationGracePeriodSeconds: 10,
    securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
    containers: [
      {
        name: 'nftables',
        image,
        imagePullPolicy: 'IfNotPresent',
        command: ['/bin/sh', '-c', SCRIPT],
        env: environment(name, spec),
        readinessProbe: { exec: { command: ['/bin/sh', '-c', IS_OPEN] }, periodSeconds: 10 },
        // So that what nft says stands in the status of the pod.
        terminationMessagePolicy: 'FallbackToLogsOnError',
        resources: { requests: { cpu: '5m', memory: '16Mi' }, limits: { cpu: '200m', memory: '64Mi' } },
        securityContext: {
          // A capability reaches a program of another user only by the file's own, which no_new_privs rules out.
          ...{ runAsUser: 0, runAsGroup: 0 },
          capabilities: { drop: ['ALL'], add: ['NET_ADMIN'] },
          ...{ privileged: false, allowPrivilegeEscalation: false, readOnlyRootFilesystem: true },
        },
      },
    ],
  };
}

/**
 * By the name of the Node object, which is unique and stays; the label kubernetes.io/hostname is neither.
 * @param {string} host
 */
function onNode(host) {
  const matchFields = [{ key: 'metadata.name', operator: 'In', values: [host] }];
  return { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchFields }] } };
}

/**
 * Values reach the script by variables alone: nothing that a user writes becomes part of a program.
 * @param {string} name
 * @param {PortRuleSpec} spec
 */
function environment(name, { name: comment, port, protocol, isPermanent }) {
  return [
    { name: 'NAMESPACE', valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } } },
    { name: 'POD_UID', valueFrom: { fieldRef: { fieldPath: 'metadata.uid' } } },
    // No name of Kubernetes has an underscore in it, so no two PortRules have a table in common.
    { name: 'TABLE', value: `portrule_$(NAMESPACE)_${name}` },
    { name: 'CHAIN', value: 'pod-$(POD_UID)' },
    { name: 'PROTOCOL', value: protocol.toLowerCase() },
    { name: 'PORT', value: String(port) },
    { name: 'MARK', value: MARK },
    { name: 'COMMENT', value: comment },
    { name: 'PERMANENT', value: String(isPermanent) },
  ];
}
