import { LEASE_NAME } from '../../contract/names.js';
import { messageOf } from '../../contract/error.js';
import type { AnyObject } from '../../contract/object.js';
import { resourceType } from '../../contract/resource.js';
import { ApiError } from '../../engine/api-error.js';
import { kindName } from '../../install/arguments.js';
import { operatorsAmong, deploymentType, PART_SELECTOR } from '../../install/installed.js';
import type { InstalledOperator } from '../../install/installed.js';
import { INSTALL_NAME } from '../../install/names.js';
import type { OperatorStatus } from './document.js';
import type { Source } from './source.js';
import type { SeenKind } from './targets.js';

const leaseType = resourceType({ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' });

/** Clocks need not agree, and a renewal may be on its way. */
const TOLERATED_MILLISECONDS = 15_000;

/** Where custom resources of a kind are. */
export interface Place {
  readonly kind: SeenKind;
  /** @default - it has none */
  readonly namespace?: string;
}

export interface Operators {
  /** All that there are. @default - nobody may look */
  readonly operators?: readonly OperatorStatus[];
  /** The places that none of them looks after, as far as can be seen. */
  readonly unattended: readonly Place[];
  /** What is wrong, and the command that mends it. */
  readonly notes: readonly string[];
}

/** The operators that there are, and whether they look after custom resources in these places. */
export async function operatorsFor(places: readonly Place[], source: Source, now: Date): Promise<Operators> {
  let found: readonly InstalledOperator[];
  let deployments: readonly AnyObject[];
  try {
    deployments = await source.list({ type: deploymentType, selector: PART_SELECTOR });
    found = operatorsAmong(deployments);
  } catch (error) {
    const forbidden = error instanceof ApiError && error.code === 403;
    const why = forbidden ? 'the right to list deployments in all namespaces is missing' : messageOf(error);
    return { unattended: [], notes: [`Whether an operator is there can't be seen: ${why}`] };
  }
  const unattended = places.filter((place) => !found.some((operator) => looksAfter(operator, place)));
  const notes = unattended.map(unattendedNote);
  const operators: OperatorStatus[] = [];
  for (const operator of found) {
    const { namespace } = operator;
    const deployment = deployments.find(({ metadata }) => metadata.namespace === namespace);
    const { available, replicas } = replicasOf(deployment);
    const led = await leaderIn(namespace, source, now);
    operators.push({
      namespace,
      available,
      replicas,
      ...(led.leader !== undefined && { leader: led.leader }),
    });
    const trouble = available === 0 ? notReady(namespace, replicas) : led.trouble;
    // One that looks after others is none of the reader's concern.
    const concerns = places.length === 0 || places.some((place) => looksAfter(operator, place));
    if (trouble !== undefined && concerns) notes.push(trouble);
  }
  return { operators, unattended, notes: [...new Set(notes)] };
}

export function looksAfter(
  { kinds, watchNamespaces }: InstalledOperator,
  { kind, namespace }: Place,
): boolean {
  const isThere = !watchNamespaces || namespace === undefined || watchNamespaces.includes(namespace);
  return isThere && kinds.includes(kindName(kind));
}

function unattendedNote({ kind, namespace }: Place): string {
  const where = namespace === undefined ? '' : ` in ${namespace}`;
  return (
    `No operator looks after ${kind.type.kind}${where}: none is installed for it. Install one with ` +
    '"reconstruct install --apply" and the options in use; one that somebody has started by "reconstruct run" isn\'t seen here'
  );
}

function notReady(namespace: string, replicas: number): string {
  const what = `The operator in ${namespace} isn't ready`;
  if (replicas === 0)
    return `${what}: it has no replicas. Mend it with "kubectl scale deployment ${INSTALL_NAME} -n ${namespace} --replicas 2"`;
  return `${what}. Find out why with "kubectl describe pods -n ${namespace} -l app.kubernetes.io/name=${INSTALL_NAME}"`;
}

function replicasOf(deployment: AnyObject | undefined): { available: number; replicas: number } {
  const { replicas = 1 } = (deployment?.spec ?? {}) as { readonly replicas?: number };
  const { availableReplicas = 0 } = (deployment?.status ?? {}) as { readonly availableReplicas?: number };
  return { available: availableReplicas, replicas };
}

interface LeaseSpec {
  readonly holderIdentity?: string;
  readonly leaseDurationSeconds?: number;
  readonly renewTime?: string;
}

/** A lease that nobody may look at is told of by nobody. */
async function leaderIn(
  namespace: string,
  source: Source,
  now: Date,
): Promise<{ readonly leader?: string; readonly trouble?: string }> {
  let spec: LeaseSpec | undefined;
  try {
    const leases = await source.list({ type: leaseType, namespace, name: LEASE_NAME });
    spec = leases[0]?.spec ?? {};
  } catch {
    return {};
  }
  const { holderIdentity = '', leaseDurationSeconds = 0, renewTime } = spec;
  const look = `Find out why with "kubectl logs -n ${namespace} deployment/${INSTALL_NAME}"`;
  if (holderIdentity === '' || renewTime === undefined)
    return { trouble: `The operator in ${namespace} does nothing: nobody holds its lease. ${look}` };
  const late = now.getTime() - Date.parse(renewTime) - leaseDurationSeconds * 1000;
  if (late <= TOLERATED_MILLISECONDS) return { leader: holderIdentity };
  return {
    trouble: `The operator in ${namespace} does nothing: its lease was renewed last at ${renewTime}. ${look}`,
  };
}
