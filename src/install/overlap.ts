import { OperatorError } from '../contract/error.js';
import type { KindFlag } from '../contract/kind-flag.js';
import type { AnyObject } from '../contract/object.js';
import { argumentOf, argumentsOf, kindName, runArguments } from './arguments.js';
import type { Cluster } from './cluster.js';
import { commandInUse } from './command-in-use.js';
import type { Given } from './command-in-use.js';
import { optionsInUse } from './options-in-use.js';
import { installedIn, isHelms, otherInstallations, releaseOf, removalOf } from './ours.js';
import { placesOf, placesOfInstallation } from './places.js';
import type { InstallProps } from './props.js';

/** What an operator looks after. */
interface Reach {
  readonly kinds: readonly string[];
  /** @default - all */
  readonly namespaces?: readonly string[];
}

/** What a command that is proposed may need. */
interface Proposal {
  readonly flags: readonly KindFlag[];
  readonly given: Given;
}

/**
 * @throws OperatorError `AlreadyInstalled` where another operator looks after the same, or would write into the same
 * objects for other namespaces: each takes away there what it doesn't know of
 */
export async function refuseOverlap(
  props: InstallProps,
  cluster: Cluster,
  proposal: Proposal,
): Promise<void> {
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
      const both = [...new Set([...(its.namespaces ?? []), ...(reach.namespaces ?? [])])].sort();
      const command = await widened(other, both, cluster, proposal);
      throw alreadyInstalled(
        `The operator in the namespace ${where} writes for ${kindName(kind)} to ${place} too, and they would undo ` +
          `each other's work: let it look after all of them, with "${command}", ` +
          "or have this one write elsewhere, by the kind's options or the policy",
      );
    }
  }
}

/** What has the other operator look after these namespaces. */
async function widened(
  other: AnyObject,
  watchNamespaces: readonly string[],
  cluster: Cluster,
  { flags, given }: Proposal,
): Promise<string> {
  const { namespace = '' } = other.metadata;
  if (isHelms(other)) {
    const where = `--namespace ${namespace} --reuse-values`;
    return `helm upgrade ${releaseOf(other)} CHART ${where} --set 'watchNamespaces={${watchNamespaces.join()}}'`;
  }
  const installed = await installedIn(namespace, cluster, () => undefined);
  const objects = installed.map(({ object }) => object);
  // An installation of somebody else has no labels of ours.
  const inUse = optionsInUse(namespace, [other, ...objects], flags);
  const { cluster: where } = given;
  return commandInUse({ ...inUse, watchNamespaces }, { ...(where && { cluster: where }) });
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
