import { DRIFT_MODES } from '../contract/controller.js';
import type { DriftMode } from '../contract/controller.js';
import { OperatorError } from '../contract/error.js';
import type { FlagValues, KindFlag } from '../contract/kind.js';
import { groupOf, objectKey } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { resourceType } from '../contract/resource.js';
import type { ResourceType } from '../contract/resource.js';
import { prometheusRuleType, serviceMonitorType } from './objects.js';
import type { ClusterApi } from '../client/cluster.js';
import type { Report } from './objects.js';
import {
  accessName,
  DASHBOARD_CONFIG_MAP,
  INSTALL_LABELS,
  INSTALL_MANAGER,
  INSTALL_NAME,
  INSTALLATION_LABEL,
  environmentName,
  METRICS_SERVICE,
  OPTIONS_ANNOTATION,
  POLICY_CONFIG_MAP,
  POLICY_FILE,
  POLICY_FOLDER,
} from './names.js';

const RBAC = 'rbac.authorization.k8s.io/v1';

export const deploymentType = resourceType({ apiVersion: 'apps/v1', kind: 'Deployment' });
const configMapType = resourceType({ apiVersion: 'v1', kind: 'ConfigMap' });

/** Types that a cluster may lack, and on which an admin of the rest may have no rights. */
const OPTIONAL: readonly ResourceType[] = [prometheusRuleType, serviceMonitorType];

/** Types of an installation's objects but for its namespace and the CRDs, in the order in which they are removed. */
const TYPES: readonly ResourceType[] = [
  deploymentType,
  ...OPTIONAL,
  resourceType({ apiVersion: 'policy/v1', kind: 'PodDisruptionBudget' }),
  resourceType({ apiVersion: 'v1', kind: 'Service' }),
  resourceType({ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy' }),
  configMapType,
  resourceType({ apiVersion: RBAC, kind: 'RoleBinding' }),
  resourceType({ apiVersion: RBAC, kind: 'Role' }),
  resourceType({ apiVersion: RBAC, kind: 'ClusterRoleBinding', namespaced: false }),
  resourceType({ apiVersion: RBAC, kind: 'ClusterRole', namespaced: false }),
  resourceType({ apiVersion: 'v1', kind: 'ServiceAccount' }),
];

/** Selects everything that `reconstruct install` has made, the CRDs included. */
export const INSTALLED_SELECTOR = `app.kubernetes.io/managed-by=${INSTALL_MANAGER}`;

/** Selects the same of `reconstruct install` and of Helm. */
export const PART_SELECTOR = `app.kubernetes.io/part-of=${INSTALL_NAME}`;

export interface Installed {
  readonly type: ResourceType;
  readonly object: AnyObject;
}

export function isInstalled({ metadata: { labels } }: AnyObject): boolean {
  return Object.entries(INSTALL_LABELS).every(([name, value]) => labels?.[name] === value);
}

export function isOf(namespace: string, object: AnyObject): boolean {
  return isInstalled(object) && object.metadata.labels?.[INSTALLATION_LABEL] === namespace;
}

/** Reports whether an installation could have made an object: labels alone are copied together with the rest of one. */
function hasOurName(namespace: string, { apiVersion, metadata }: AnyObject): boolean {
  const { name } = metadata;
  if (apiVersion === RBAC)
    return name === accessName(namespace) || name.startsWith(`${accessName(namespace)}:`);
  const names = [INSTALL_NAME, METRICS_SERVICE, POLICY_CONFIG_MAP, DASHBOARD_CONFIG_MAP];
  return metadata.namespace === namespace && names.includes(name);
}

/**
 * Lists the objects of an installation but for its namespace and the CRDs, whatever options it was made with, in the order
 * in which they are removed.
 * @param report is called for each optional type that may not be listed
 */
export async function installedIn(
  namespace: string,
  cluster: Pick<ClusterApi, 'list'>,
  report: Report,
): Promise<Installed[]> {
  const selector = `${INSTALLED_SELECTOR},${INSTALLATION_LABEL}=${namespace}`;
  const list = async (type: ResourceType): Promise<Installed[]> => {
    try {
      return (await cluster.list(type, { selector })).map((object) => ({ type, object }));
    } catch (error) {
      const isForbidden = error instanceof OperatorError && error.reason === 'Forbidden';
      if (!OPTIONAL.includes(type) || !isForbidden) throw error;
      const name = `${type.plural}.${groupOf(type.apiVersion)}`;
      report(`${name} may not be listed: what an earlier installation has of them stays`);
      return [];
    }
  };
  const found = (await Promise.all(TYPES.map(list))).flat();
  return found.filter(({ object }) => isOf(namespace, object) && hasOurName(namespace, object));
}

/** Reports whether this is the Deployment of an operator, of `reconstruct install` or of Helm. */
export function isOperator({ metadata: { namespace, name, labels } }: AnyObject): boolean {
  return name === INSTALL_NAME && namespace !== undefined && labels?.[INSTALLATION_LABEL] === namespace;
}

/** Lists the Deployments of operators in other namespaces. */
export async function otherInstallations(namespace: string, cluster: ClusterApi): Promise<AnyObject[]> {
  const deployments = await cluster.list(deploymentType, { selector: PART_SELECTOR });
  return deployments.filter((each) => isOperator(each) && each.metadata.namespace !== namespace);
}

export function isHelms({ metadata: { labels } }: AnyObject): boolean {
  return labels?.['app.kubernetes.io/managed-by'] === 'Helm';
}

/** Returns the command that removes the operator which an object is part of. */
export function removalOf(object: AnyObject): string {
  const { namespace = '', labels, annotations } = object.metadata;
  const where = labels?.[INSTALLATION_LABEL] ?? namespace;
  return isHelms(object)
    ? `helm uninstall ${annotations?.['meta.helm.sh/release-name'] ?? 'RELEASE'} --namespace ${where}`
    : `reconstruct uninstall --namespace ${where}`;
}

/** An installed operator, by the arguments and the environment of its container. */
export interface InstalledOperator {
  readonly namespace: string;
  readonly kinds: readonly string[];
  readonly watchNamespaces?: readonly string[];
  /** Whether it runs with `--observe-only`, so it writes nothing. */
  readonly observesOnly: boolean;
  /** @default correct */
  readonly drift?: DriftMode;
  /** Options by which it leaves things undone, as in `--drift=warn`. */
  readonly restraints: readonly string[];
  /** Arguments, then variables as `NAME=value`. */
  readonly args: readonly string[];
}

interface DeploymentSpec {
  readonly replicas?: number;
  readonly template?: {
    readonly spec?: {
      readonly containers?: readonly Container[];
    };
  };
}

interface Container {
  readonly args?: readonly string[];
  readonly image?: string;
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
}

export function operatorOf(deployment: AnyObject): InstalledOperator {
  const { template } = (deployment.spec ?? {}) as DeploymentSpec;
  const { args: given = [], env = [] } = template?.spec?.containers?.[0] ?? {};
  const args = [...given, ...env.map(({ name, value = '' }) => `${name}=${value}`)];
  const watchNamespaces = argumentOf(args, '--watch-namespace');
  const observesOnly = ['', 'true'].includes(argumentOf(args, '--observe-only')?.join() ?? 'false');
  const mode = argumentOf(args, '--drift')?.join();
  const drift = DRIFT_MODES.find((each) => each === mode && each !== 'correct');
  return {
    namespace: deployment.metadata.namespace ?? '',
    kinds: argumentOf(args, '--kinds') ?? [],
    ...(watchNamespaces && { watchNamespaces }),
    ...(drift && { drift }),
    observesOnly,
    restraints: [
      ...(observesOnly ? ['--observe-only'] : []),
      ...['--selector', '--watch-namespace-selector'].flatMap((flag) => {
        const labels = argumentOf(args, flag)?.join();
        return labels && !(watchNamespaces && flag !== '--selector') ? [`${flag}=${labels}`] : [];
      }),
      ...(drift ? [`--drift=${drift}`] : []),
    ],
    args,
  };
}

/**
 * Returns the values of an argument that is written `--name=a,b`, or `--name` alone, else of its variable; undefined where
 * neither is given.
 */
function argumentOf(args: readonly string[], flag: string): string[] | undefined {
  if (args.includes(flag)) return [''];
  for (const name of [flag, environmentName(flag)]) {
    const value = args.find((arg) => arg.startsWith(`${name}=`))?.slice(name.length + 1);
    if (value) return value.split(',');
  }
  return undefined;
}

/** Returns the values that an operator was given for these flags. */
export function flagsOf({ args }: InstalledOperator, flags: readonly KindFlag[]): FlagValues {
  return Object.fromEntries(
    flags.flatMap(({ name, list }) => {
      const values = argumentOf(args, name);
      return values ? [[name, list ? values : values.join()]] : [];
    }),
  );
}

/**
 * Lists the installed operators by their namespaces, of `reconstruct install` and of Helm.
 * @param namespace the only one that is looked into. @default - all
 * @throws OperatorError where reading is refused
 */
export async function installedOperators(
  cluster: Pick<ClusterApi, 'find' | 'list'>,
  namespace?: string,
): Promise<InstalledOperator[]> {
  const found =
    namespace === undefined
      ? await cluster.list(deploymentType, { selector: PART_SELECTOR })
      : [await cluster.find(deploymentType, objectKey(namespace, INSTALL_NAME))];
  return found
    .flatMap((each) => (each && isOperator(each) ? [operatorOf(each)] : []))
    .sort((a, b) => (a.namespace < b.namespace ? -1 : 1));
}

/**
 * Reads the policy of an operator from the ConfigMap that `install` mounts.
 * @returns undefined where it has none
 * @throws OperatorError where reading is refused, or the policy isn't where `install` puts it
 */
export async function policyOf(
  cluster: Pick<ClusterApi, 'find'>,
  { args, namespace }: InstalledOperator,
): Promise<{ readonly name: string; readonly text: string } | undefined> {
  const file = argumentOf(args, '--policy')?.join();
  if (file === undefined) return undefined;
  const key = objectKey(namespace, POLICY_CONFIG_MAP);
  const isOurs = file === `${POLICY_FOLDER}/${POLICY_FILE}`;
  const map = isOurs ? await cluster.find(configMapType, key) : undefined;
  const text = (map?.data as Readonly<Record<string, string>> | undefined)?.[POLICY_FILE];
  if (text !== undefined) return { name: `ConfigMap ${key}`, text };
  const message = isOurs
    ? `there is no ${POLICY_FILE} in the ConfigMap ${key}`
    : `it is ${file} in its container`;
  throw new OperatorError({ reason: 'NotFound', message });
}

/** Options of `install` that have another operator as it is, by name. */
export type OptionsInUse = Readonly<Record<string, string>>;

const RUN_OPTIONS = ['--kinds', '--watch-namespace', '--policy', '--metrics-secure'];
const ANNOTATED_OPTIONS = [
  ...['--monitoring', '--monitoring-labels', '--runbooks'],
  ...['--metrics-cert-secret', '--omit-user-ids'],
];

/**
 * Reads the options of an installation from the arguments of its container, and from the annotation of its Deployment.
 * @param deployment undefined where it was deleted
 * @param flags of the kinds
 */
export function optionsInUse(deployment: AnyObject | undefined, flags: readonly KindFlag[]): OptionsInUse {
  if (!deployment) return {};
  const { replicas, template } = (deployment.spec ?? {}) as DeploymentSpec;
  const { args = [], image } = template?.spec?.containers?.[0] ?? {};
  const annotated = deployment.metadata.annotations?.[OPTIONS_ANNOTATION]?.split(' ') ?? [];
  const names = [...RUN_OPTIONS, ...flags.map(({ name }) => name), ...ANNOTATED_OPTIONS];
  const options = names.flatMap((name) => {
    const values = argumentOf([...args, ...annotated], name);
    return values ? [[name, values.join()] as const] : [];
  });
  return {
    ...Object.fromEntries(options),
    ...(image !== undefined && { '--image': image }),
    // With none, it was stopped, and not installed so.
    ...(replicas && { '--replicas': String(replicas) }),
  };
}

/** Options that a proposed command takes over from the one that was given. */
export interface GivenOptions {
  readonly cluster?: OptionsInUse;
  /** Win over those in use. @default - none */
  readonly options?: OptionsInUse;
}

/** Returns the shell command that installs an operator with the options that it has. */
export function commandInUse(
  namespace: string,
  inUse: OptionsInUse,
  { cluster = {}, options = {} }: GivenOptions,
): string {
  const own = { '--namespace': namespace };
  const hasPolicy = inUse['--policy'] !== undefined;
  const all = { ...own, ...inUse, ...(hasPolicy && { '--policy': POLICY_FILE }), ...options, ...cluster };
  const install = `reconstruct install --apply ${written(all)}`;
  if (!hasPolicy) return install;
  // It may have been edited since it was installed.
  const read = `kubectl get configmap ${POLICY_CONFIG_MAP} ${written({ ...own, ...cluster })}`;
  return `${read} -o jsonpath='{.data.${POLICY_FILE.replace('.', '\\.')}}' > ${POLICY_FILE} && ${install}`;
}

function written(options: OptionsInUse): string {
  const quoted = (value: string): string =>
    /^[\w@%+=:,./-]+$/.test(value) ? value : `'${value.replaceAll("'", "'\\''")}'`;
  return Object.entries(options)
    .map(([name, value]) => (value === '' ? name : `${name} ${quoted(value)}`))
    .join(' ');
}
