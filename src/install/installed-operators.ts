import { OperatorError } from '../contract/error.js';
import type { FlagValues, KindFlag } from '../contract/kind-flag.js';
import { objectKey } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { resourceType } from '../contract/resource.js';
import { argumentOf, argumentsOf, POLICY_FILE, POLICY_FOLDER } from './arguments.js';
import type { Cluster } from './cluster.js';
import { INSTALL_NAME, POLICY_CONFIG_MAP } from './names.js';
import { deploymentType, isOperator, PART_SELECTOR } from './ours.js';

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
export interface StoredPolicy {
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
