import { OperatorError } from '../contract/error.js';
import type { FlagValues, KindFlag } from '../contract/kind.js';
import { groupOf, objectKey } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { resourceType } from '../contract/resource.js';
import type { ResourceType } from '../contract/resource.js';
import { argumentOf, argumentsOf, POLICY_FILE, POLICY_FOLDER } from './arguments.js';
import type { Cluster, Tell } from './cluster.js';
import { prometheusRuleType, serviceMonitorType } from './monitoring/prometheus.js';
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

const configMapType = resourceType({ apiVersion: 'v1', kind: 'ConfigMap' });

/** An operator, as its Deployment says. */
export interface InstalledOperator {
  /** Where it runs. */
  readonly namespace: string;
  /** By their full names. */
  readonly kinds: readonly string[];
  /** @default - all */
  readonly watchNamespaces?: readonly string[];
  /** Its arguments, as `install` writes them. */
  readonly args: readonly string[];
}

/** What an operator was given of these flags. */
export function flagsOf({ args }: InstalledOperator, flags: readonly KindFlag[]): FlagValues {
  return Object.fromEntries(
    flags.flatMap(({ name, list }) => {
      const values = argumentOf(args, name);
      return values ? [[name, list ? values : values.join()]] : [];
    }),
  );
}

/**
 * The operators that are there, by their namespaces, whether `reconstruct install` or Helm has made them.
 * @param namespace only the one here is looked for. @default - all
 * @throws OperatorError where nobody may look
 */
export async function installedOperators(
  cluster: Pick<Cluster, 'find' | 'list'>,
  namespace?: string,
): Promise<InstalledOperator[]> {
  return operatorsAmong(await deployments(cluster, namespace));
}

/** Which of these Deployments `reconstruct install` has made, and as what; by their namespaces. */
export function operatorsAmong(found: readonly AnyObject[]): InstalledOperator[] {
  return found
    .filter(isOperator)
    .map(operatorOf)
    .sort((a, b) => (a.namespace < b.namespace ? -1 : 1));
}

/** A policy as it stands in the cluster. */
interface StoredPolicy {
  /** Where it stands, for people. */
  readonly name: string;
  readonly text: string;
}

/**
 * The policy that an operator follows, from the ConfigMap that `install` mounts.
 * @returns undefined where it has none
 * @throws OperatorError where nobody may read it, or it isn't where `install` puts it
 */
export async function policyOf(
  cluster: Pick<Cluster, 'find'>,
  { args, namespace }: InstalledOperator,
): Promise<StoredPolicy | undefined> {
  const file = argumentOf(args, '--policy')?.join();
  if (file === undefined) return undefined;
  if (file !== `${POLICY_FOLDER}/${POLICY_FILE}`) throw notFound(`it is ${file} in its container`);
  const key = objectKey(namespace, POLICY_CONFIG_MAP);
  const map = await cluster.find(configMapType, key);
  const text = (map?.data as Readonly<Record<string, string>> | undefined)?.[POLICY_FILE];
  if (text === undefined) throw notFound(`there is no ${POLICY_FILE} in the ConfigMap ${key}`);
  return { name: `ConfigMap ${key}`, text };
}

function notFound(message: string): OperatorError {
  return new OperatorError({ reason: 'NotFound', message });
}

async function deployments(
  cluster: Pick<Cluster, 'find' | 'list'>,
  namespace: string | undefined,
): Promise<readonly AnyObject[]> {
  if (namespace === undefined) return cluster.list(deploymentType, { selector: PART_SELECTOR });
  const one = await cluster.find(deploymentType, objectKey(namespace, INSTALL_NAME));
  return one ? [one] : [];
}

/** What such a Deployment says. */
export function operatorOf(deployment: AnyObject): InstalledOperator {
  const args = argumentsOf(deployment);
  const watchNamespaces = argumentOf(args, '--watch-namespace');
  return {
    namespace: deployment.metadata.namespace ?? '',
    kinds: argumentOf(args, '--kinds') ?? [],
    ...(watchNamespaces && { watchNamespaces }),
    args,
  };
}
