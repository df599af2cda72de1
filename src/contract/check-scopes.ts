import { OperatorError } from './error.js';
import { groupKind } from './resource.js';
import type { ResourceType } from './resource.js';

/** The types of Kubernetes itself that have no namespace and that somebody may want to make. */
const CLUSTER_SCOPED: ReadonlySet<string> = new Set([
  ...['Namespace', 'Node', 'PersistentVolume', 'APIService.apiregistration.k8s.io'],
  ...['ClusterRole.rbac.authorization.k8s.io', 'ClusterRoleBinding.rbac.authorization.k8s.io'],
  'CustomResourceDefinition.apiextensions.k8s.io',
  ...['IngressClass.networking.k8s.io', 'GatewayClass.gateway.networking.k8s.io'],
  ...['StorageClass.storage.k8s.io', 'CSIDriver.storage.k8s.io', 'PriorityClass.scheduling.k8s.io'],
  ...['RuntimeClass.node.k8s.io', 'ValidatingWebhookConfiguration.admissionregistration.k8s.io'],
  'MutatingWebhookConfiguration.admissionregistration.k8s.io',
  'ValidatingAdmissionPolicy.admissionregistration.k8s.io',
  'ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io',
]);

/**
 * An object without a namespace can't be owned by one that has a namespace: the garbage collector would delete it.
 * @see https://kubernetes.io/docs/concepts/overview/working-with-objects/owners-dependents/
 * @throws OperatorError `InvalidDefinition`
 */
export function checkScopes(owner: ResourceType, children: readonly ResourceType[]): void {
  children.forEach((child, index) => {
    const name = groupKind(child);
    const where = `defineKind: children[${index}]: ${name} has no namespace`;
    if (child.namespaced && !CLUSTER_SCOPED.has(name)) return;
    if (owner.namespaced) {
      throw invalid(
        `${where}, and ${owner.kind} has one: the cluster would delete it, since nothing in a namespace can own it; set "scope: Cluster" in the CRD, or leave it out`,
      );
    }
    if (child.namespaced) {
      const { apiVersion, kind } = child;
      throw invalid(`${where}; write { apiVersion: '${apiVersion}', kind: '${kind}', namespaced: false }`);
    }
  });
}

function invalid(message: string): OperatorError {
  return new OperatorError({ reason: 'InvalidDefinition', message });
}
