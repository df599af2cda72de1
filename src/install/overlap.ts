import { OperatorError } from '../contract/error.js';
import type { AnyObject } from '../contract/object.js';
import { argumentOf, argumentsOf, kindName, runArguments } from './arguments.js';
import type { Cluster } from './cluster.js';
import { isHelms, otherInstallations, removalOf } from './ours.js';
import { placesOf, placesOfInstallation } from './places.js';
import type { InstallProps } from './props.js';

/** What an operator looks after. */
interface Reach {
  readonly kinds: readonly string[];
  /** @default - all */
  readonly namespaces?: readonly string[];
}

/**
 * @throws OperatorError `AlreadyInstalled` where another operator looks after the same, or would write into the same
 * objects for other namespaces: each takes away there what it doesn't know of
 */
export async function refuseOverlap(props: InstallProps, cluster: Cluster): Promise<void> {
  const reach = reachOf(runArguments(props));
  for (const other of await otherInstallations(props.namespace, cluster)) {
    const where = other.metadata.namespace ?? '';
    const its = reachOf(argumentsOf(other));
    const shared = sharedKinds(reach, its);
    if (shared.length > 0) {
      throw alreadyInstalled(
        `An operator in the namespace ${where} already looks after ${shared.join(', ')} here: remove it with ` +
          `"${removalOf(other)}", or divide kinds or namespaces with --kinds or --watch-namespace`,
      );
    }
    const common = props.kinds.filter((kind) => its.kinds.includes(kindName(kind)));
    const taken = await placesOfInstallation(where, cluster);
    for (const kind of common) {
      const place = placesOf(kind, props).find((each) => taken.has(each));
      if (place === undefined) continue;
      const both = [...new Set([...(its.namespaces ?? []), ...(reach.namespaces ?? [])])].sort().join();
      throw alreadyInstalled(
        `The operator in the namespace ${where} writes for ${kindName(kind)} to ${place} too, and they would undo ` +
          `each other's work: let it look after all of them, with "${widened(other, both)}", ` +
          "or have this one write elsewhere, by the kind's options or the policy",
      );
    }
  }
}

/** What has the other operator look after these namespaces. */
function widened(other: AnyObject, namespaces: string): string {
  return isHelms(other)
    ? `--set watchNamespaces={${namespaces}}`
    : `--namespace ${other.metadata.namespace ?? ''} --watch-namespace ${namespaces}`;
}

function alreadyInstalled(message: string): OperatorError {
  return new OperatorError({ reason: 'AlreadyInstalled', message });
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
