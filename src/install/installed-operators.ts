import type { FlagValues, KindFlag } from '../contract/kind-flag.js';
import { objectKey } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { argumentOf, argumentsOf } from './arguments.js';
import type { Cluster } from './cluster.js';
import { INSTALL_NAME } from './names.js';
import { deploymentType, INSTALLED_SELECTOR, isOf } from './ours.js';

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
 * The operators that `reconstruct install` has made, by their namespaces.
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
    .filter(({ metadata }) => metadata.name === INSTALL_NAME)
    .filter((deployment) => isOf(deployment.metadata.namespace ?? '', deployment))
    .map(operatorOf)
    .sort((a, b) => (a.namespace < b.namespace ? -1 : 1));
}

async function deployments(
  cluster: Pick<Cluster, 'find' | 'list'>,
  namespace: string | undefined,
): Promise<readonly AnyObject[]> {
  if (namespace === undefined) return cluster.list(deploymentType, { selector: INSTALLED_SELECTOR });
  const one = await cluster.find(deploymentType, objectKey(namespace, INSTALL_NAME));
  return one ? [one] : [];
}

function operatorOf(deployment: AnyObject): InstalledOperator {
  const args = argumentsOf(deployment);
  const watchNamespaces = argumentOf(args, '--watch-namespace');
  return {
    namespace: deployment.metadata.namespace ?? '',
    kinds: argumentOf(args, '--kinds') ?? [],
    ...(watchNamespaces && { watchNamespaces }),
    args,
  };
}
