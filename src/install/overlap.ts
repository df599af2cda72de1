import { OperatorError } from '../contract/error.js';
import { argumentOf, argumentsOf, runArguments } from './arguments.js';
import type { Cluster } from './cluster.js';
import { otherInstallations } from './ours.js';
import type { InstallProps } from './props.js';

/** What an operator looks after. */
interface Reach {
  readonly kinds: readonly string[];
  /** @default - all */
  readonly namespaces?: readonly string[];
}

/** @throws OperatorError `AlreadyInstalled` where another operator would look after the same */
export async function refuseOverlap(props: InstallProps, cluster: Cluster): Promise<void> {
  const reach = reachOf(runArguments(props));
  for (const other of await otherInstallations(props.namespace, cluster)) {
    const shared = sharedKinds(reach, reachOf(argumentsOf(other)));
    if (shared.length === 0) continue;
    const where = other.metadata.namespace ?? '';
    throw new OperatorError({
      reason: 'AlreadyInstalled',
      message:
        `An operator in the namespace ${where} already looks after ${shared.join(', ')} here: remove it with ` +
        `"reconstruct uninstall --namespace ${where}", or divide kinds or namespaces with --kinds or --watch-namespace`,
    });
  }
}

function sharedKinds(a: Reach, b: Reach): string[] {
  const { namespaces } = a;
  const meet = !namespaces || !b.namespaces || namespaces.some((name) => b.namespaces?.includes(name));
  return meet ? a.kinds.filter((kind) => b.kinds.includes(kind)) : [];
}

function reachOf(args: readonly string[]): Reach {
  const namespaces = argumentOf(args, '--watch-namespace');
  return { kinds: argumentOf(args, '--kinds') ?? [], ...(namespaces && { namespaces }) };
}
