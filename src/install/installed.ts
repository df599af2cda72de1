import { DRIFT_MODES } from '../contract/plan.js';
import type { DriftMode } from '../contract/plan.js';
import { OperatorError } from '../contract/error.js';
import { ADMIN_FILES } from '../contract/kind.js';
import type { AdminFile, FlagValues, KindFlag } from '../contract/kind.js';
import { groupOf, keyOf, objectKey } from '../contract/object.js';
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
  MOUNTED,
  OPTIONS_ANNOTATION,
} from './names.js';
import type { InstallOptions } from './props.js';
import { valueAt } from '../values/json.js';

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
  const files = Object.values(MOUNTED).map(({ configMap }) => configMap);
  const names: readonly string[] = [INSTALL_NAME, METRICS_SERVICE, DASHBOARD_CONFIG_MAP, ...files];
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

interface Container {
  readonly args?: readonly string[];
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
}

export function operatorOf(deployment: AnyObject): InstalledOperator {
  const containers = valueAt(deployment, ['spec', 'template', 'spec', 'containers']);
  const { args: given = [], env = [] } = (containers as readonly Container[] | undefined)?.[0] ?? {};
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
      ...['--selector', '--watch-namespace-selector', '--drift', '--on-upgrade'].flatMap((flag) => {
        const value = argumentOf(args, flag)?.join();
        const isUsual = ['correct', 'apply', '', undefined].includes(value);
        return isUsual || (watchNamespaces && flag.endsWith('space-selector')) ? [] : [`${flag}=${value}`];
      }),
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
 * Reads a file of an operator from the ConfigMap that `install` mounts.
 * @returns undefined where it has none
 * @throws OperatorError where reading is refused, or the file isn't where `install` puts it
 */
export async function storedFile(
  name: AdminFile,
  cluster: Pick<ClusterApi, 'find'>,
  { args, namespace }: InstalledOperator,
): Promise<{ readonly name: string; readonly text: string } | undefined> {
  const file = argumentOf(args, `--${name}`)?.join();
  if (file === undefined) return undefined;
  const { configMap, key, folder } = MOUNTED[name];
  const place = objectKey(namespace, configMap);
  const isOurs = file === `${folder}/${key}`;
  const map = isOurs ? await cluster.find(configMapType, place) : undefined;
  const text = (map?.data as Readonly<Record<string, string>> | undefined)?.[key];
  if (text !== undefined) return { name: `ConfigMap ${place}`, text };
  const message = isOurs ? `there is no ${key} in the ConfigMap ${place}` : `it is ${file} in its container`;
  throw new OperatorError({ reason: 'NotFound', message });
}

/**
 * Returns the options of the present installation; none without one.
 * @throws OperatorError `OptionsLeftOut` where the Deployment doesn't say with which options it was installed
 */
export function optionsInUse(present: readonly AnyObject[]): InstallOptions {
  const deployment = present.find(({ kind }) => kind === deploymentType.kind);
  if (!deployment) {
    const names = present.map(({ metadata }) => metadata.name);
    const files = ADMIN_FILES.filter((file) => names.includes(MOUNTED[file].configMap));
    return Object.fromEntries(files.map((file) => [`--${file}`, MOUNTED[file].configMap]));
  }
  try {
    return JSON.parse(deployment.metadata.annotations?.[OPTIONS_ANNOTATION] ?? '') as InstallOptions;
  } catch (cause) {
    const message =
      `The annotation ${OPTIONS_ANNOTATION} of the Deployment ${keyOf(deployment)} doesn't say with which options it was ` +
      'installed: give all that it needs, and add --replace';
    throw new OperatorError({ reason: 'OptionsLeftOut', message, cause });
  }
}

const OF_THE_CLUSTER: readonly string[] = ['--kubeconfig', '--context'];

/**
 * Returns the shell command that installs an operator with the options that it has.
 * @param given options that win over those in use
 */
export function commandInUse(namespace: string, inUse: InstallOptions, given: InstallOptions): string {
  const own = { '--namespace': namespace };
  const files = ADMIN_FILES.filter((file) => inUse[`--${file}`] !== undefined);
  const named = Object.fromEntries(files.map((file) => [`--${file}`, MOUNTED[file].key]));
  const install = `reconstruct install --apply ${written({ ...own, ...inUse, ...named, ...given })}`;
  // They may have been edited since it was installed.
  const cluster = Object.entries(given).filter(([name]) => OF_THE_CLUSTER.includes(name));
  const where = written({ ...own, ...Object.fromEntries(cluster) });
  const reading = files.map((file) => {
    const { configMap, key } = MOUNTED[file];
    const path = `{.data.${key.replace('.', '\\.')}}`;
    return `kubectl get configmap ${configMap} ${where} -o jsonpath='${path}' > ${key}`;
  });
  return [...reading, install].join(' && ');
}

function written(options: InstallOptions): string {
  const quoted = (value: string): string =>
    /^[\w@%+=:,./-]+$/.test(value) ? value : `'${value.replaceAll("'", "'\\''")}'`;
  return Object.entries(options)
    .map(([name, value]) => (value === '' ? name : `${name} ${quoted(value)}`))
    .join(' ');
}
