import { groupOf } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { resourceType } from '../contract/resource.js';
import type { ResourceType } from '../contract/resource.js';
import { OperatorError } from '../contract/error.js';
import type { Cluster, Tell } from './cluster.js';
import {
  accessName,
  DASHBOARD_CONFIG_MAP,
  INSTALL_LABELS,
  INSTALL_MANAGER,
  INSTALL_NAME,
  INSTALLATION_LABEL,
  METRICS_SERVICE,
  POLICY_CONFIG_MAP,
} from './names.js';
import { prometheusRuleType, serviceMonitorType } from './monitoring/types.js';

const RBAC = 'rbac.authorization.k8s.io/v1';

export const deploymentType = resourceType({ apiVersion: 'apps/v1', kind: 'Deployment' });

/** Types that a cluster may lack, and on which an admin of the rest may have no rights. */
const OPTIONAL: readonly ResourceType[] = [prometheusRuleType, serviceMonitorType];

/** What an installation may consist of beside its namespace and the CRDs, in the order in which it is removed. */
const TYPES: readonly ResourceType[] = [
  deploymentType,
  ...OPTIONAL,
  resourceType({ apiVersion: 'policy/v1', kind: 'PodDisruptionBudget' }),
  resourceType({ apiVersion: 'v1', kind: 'Service' }),
  resourceType({ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy' }),
  resourceType({ apiVersion: 'v1', kind: 'ConfigMap' }),
  resourceType({ apiVersion: RBAC, kind: 'RoleBinding' }),
  resourceType({ apiVersion: RBAC, kind: 'Role' }),
  resourceType({ apiVersion: RBAC, kind: 'ClusterRoleBinding', namespaced: false }),
  resourceType({ apiVersion: RBAC, kind: 'ClusterRole', namespaced: false }),
  resourceType({ apiVersion: 'v1', kind: 'ServiceAccount' }),
];

/** Of everything that is installed, the CRDs included. */
export const INSTALLED_SELECTOR = `app.kubernetes.io/managed-by=${INSTALL_MANAGER}`;

/** The same, by whatever means it is installed. */
export const PART_SELECTOR = `app.kubernetes.io/part-of=${INSTALL_NAME}`;

/** An object with its type. */
export interface Installed {
  readonly type: ResourceType;
  readonly object: AnyObject;
}

/** Whether this was made by any installation. */
export function isInstalled({ metadata: { labels } }: AnyObject): boolean {
  return Object.entries(INSTALL_LABELS).every(([name, value]) => labels?.[name] === value);
}

/** Whether this was made by an installation in that namespace. */
export function isOf(namespace: string, object: AnyObject): boolean {
  return isInstalled(object) && object.metadata.labels?.[INSTALLATION_LABEL] === namespace;
}

/** The object as it is applied where somebody else has made it. */
export function withoutInstallLabels(object: AnyObject): AnyObject {
  const { labels = {}, ...metadata } = object.metadata;
  const others = Object.entries(labels).filter(([name, value]) => INSTALL_LABELS[name] !== value);
  return {
    ...object,
    metadata: { ...metadata, ...(others.length > 0 && { labels: Object.fromEntries(others) }) },
  };
}

/** Whether an installation could have made it: labels are copied easily, together with the rest of an object. */
function hasOurName(namespace: string, { apiVersion, metadata }: AnyObject): boolean {
  const { name } = metadata;
  if (apiVersion === RBAC)
    return name === accessName(namespace) || name.startsWith(`${accessName(namespace)}:`);
  const names = [INSTALL_NAME, METRICS_SERVICE, POLICY_CONFIG_MAP, DASHBOARD_CONFIG_MAP];
  return metadata.namespace === namespace && names.includes(name);
}

/**
 * What is there of an installation but its namespace and the CRDs, whatever options it was made with, in the order in
 * which it is to be removed.
 * @param tell hears which types may not be looked at, of those that an installation can do without
 */
export async function installedIn(
  namespace: string,
  cluster: Pick<Cluster, 'list'>,
  tell: Tell,
): Promise<Installed[]> {
  const selector = `${INSTALLED_SELECTOR},${INSTALLATION_LABEL}=${namespace}`;
  const found = await Promise.all(
    TYPES.map(async (type) => {
      try {
        const objects = await cluster.list(type, { selector });
        return objects.map((object) => ({ type, object }));
      } catch (error) {
        if (!OPTIONAL.includes(type) || !(error instanceof OperatorError) || error.reason !== 'Forbidden')
          throw error;
        tell(
          `${type.plural}.${groupOf(type.apiVersion)} may not be listed: what an earlier installation has of them stays`,
        );
        return [];
      }
    }),
  );
  return found.flat().filter(({ object }) => isOf(namespace, object) && hasOurName(namespace, object));
}

/** Whether this is the Deployment of an operator, by whatever means it is installed. */
export function isOperator({ metadata: { namespace, name, labels } }: AnyObject): boolean {
  return name === INSTALL_NAME && namespace !== undefined && labels?.[INSTALLATION_LABEL] === namespace;
}

/** The Deployments of operators in other namespaces, by whatever means they are installed. */
export async function otherInstallations(namespace: string, cluster: Cluster): Promise<AnyObject[]> {
  const deployments = await cluster.list(deploymentType, { selector: PART_SELECTOR });
  return deployments.filter((each) => isOperator(each) && each.metadata.namespace !== namespace);
}

/** Whether Helm has made it. */
export function isHelms({ metadata: { labels } }: AnyObject): boolean {
  return labels?.['app.kubernetes.io/managed-by'] === 'Helm';
}

/** The release of Helm that it is of. */
export function releaseOf({ metadata: { annotations } }: AnyObject): string {
  return annotations?.['meta.helm.sh/release-name'] ?? 'RELEASE';
}

/** The command that removes an operator, or whatever else is installed with one. */
export function removalOf(object: AnyObject): string {
  const { namespace, labels } = object.metadata;
  const where = labels?.[INSTALLATION_LABEL] ?? namespace ?? '';
  return isHelms(object)
    ? `helm uninstall ${releaseOf(object)} --namespace ${where}`
    : `reconstruct uninstall --namespace ${where}`;
}
