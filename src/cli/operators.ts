import type { V1Deployment, V1Lease } from '@kubernetes/client-node';
import { messageOf, OperatorError } from '../contract/error.js';
import { ADMIN_FILES } from '../contract/kind.js';
import type {
  AdminFile,
  AdminFiles,
  FlagValues,
  Kind,
  KindContext,
  Render,
  Sections,
} from '../contract/kind.js';
import { LEASE_NAME, rolloutStopped } from '../contract/names.js';
import { byName, describeRef } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { resourceType } from '../contract/resource.js';
import type { Wire } from '../author/kubernetes-types.js';
import { statusOf } from '../values/readiness.js';
import { ApiError } from '../client/api-error.js';
import type { ClusterApi } from '../client/cluster.js';
import {
  deploymentType,
  flagsOf,
  installedOperators,
  isOperator,
  operatorOf,
  PART_SELECTOR,
  storedFile,
} from '../install/installed.js';
import type { InstalledOperator } from '../install/installed.js';
import { DEFAULT_NAMESPACE, INSTALL_NAME, kindName } from '../install/names.js';
import type { SectionsParser } from './admin-file.js';
import { CliError, WORDS } from './output.js';
import type { List } from './reader.js';

/** Plain data of a kind: another process may have loaded the kind. */
export type KindData = Pick<Kind, 'name' | 'type' | 'crd'>;

export interface OperatorStatus {
  readonly namespace: string;
  readonly available: number;
  readonly replicas: number;
  /** Holder of the lease. @default - there is none, or the lease may not be read */
  readonly leader?: string;
  /** Options by which it leaves things undone, as in `--observe-only`. @default - none */
  readonly restraints?: readonly string[];
}

/** Returns the rollouts that have stopped, by the annotations of the lease: of which kind and build, and why. */
export function stoppedRollouts({ metadata: { annotations = {} } }: AnyObject) {
  const prefix = rolloutStopped('');
  return Object.entries(annotations).flatMap(([name, value]) => {
    const [, build = '', why = ''] = /^(\S+) stopped (.*)$/s.exec(name.startsWith(prefix) ? value : '') ?? [];
    return build ? [{ kind: name.slice(prefix.length), build, why }] : [];
  });
}

interface KindInNamespace {
  readonly kind: KindData;
  readonly namespace?: string | undefined;
  /** Reports whether its custom resources say something of a build. @default - none does */
  readonly mentions?: (build: string) => boolean;
}

function covers(
  { kinds, watchNamespaces }: InstalledOperator,
  { kind, namespace }: KindInNamespace,
): boolean {
  const isWatched = !watchNamespaces || namespace === undefined || watchNamespaces.includes(namespace);
  return isWatched && kinds.includes(kindName(kind));
}

function isResponsible(operator: InstalledOperator, place: KindInNamespace): boolean {
  return !operator.observesOnly && covers(operator, place);
}

export const leaseType = resourceType({ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' });

/** Time by which a lease may be late: clocks may differ, and a renewal may be on its way. */
const TOLERATED_MILLISECONDS = 15_000;

interface OperatorsFound {
  readonly operators?: readonly OperatorStatus[];
  /** Places that no operator is responsible for, as far as can be seen. */
  readonly unattended: readonly KindInNamespace[];
  /** Faults, each with the command that helps. */
  readonly notes: readonly string[];
}

const NONE_INSTALLED =
  'No operator is installed in the cluster. One that was started outside of it, by "reconstruct dev" or "reconstruct run", ' +
  'isn\'t seen here; "reconstruct install --apply" with the options in use installs one';

/** Finds the installed operators, and whether one is responsible for each place and works. */
export async function operatorsFor(
  places: readonly KindInNamespace[],
  list: List,
  now: Date,
): Promise<OperatorsFound> {
  let deployments: readonly AnyObject[];
  try {
    deployments = byName((await list({ type: deploymentType, selector: PART_SELECTOR })).filter(isOperator));
  } catch (error) {
    const forbidden = error instanceof ApiError && error.code === 403;
    const why = forbidden ? 'the right to list deployments in all namespaces is missing' : messageOf(error);
    return { unattended: [], notes: [`Whether an operator is there can't be seen: ${why}`] };
  }
  if (deployments.length === 0) return { operators: [], unattended: places, notes: [NONE_INSTALLED] };
  const found = deployments.map(operatorOf);
  const unattended = places.filter((place) => !found.some((operator) => isResponsible(operator, place)));
  const notes = new Set(unattended.map((place) => unattendedNote(place, found)));
  const operators: OperatorStatus[] = [];
  for (const [index, operator] of found.entries()) {
    const { namespace, observesOnly, restraints } = operator;
    const { spec, status } = deployments[index] as Wire<V1Deployment>;
    const [available, replicas] = [status?.availableReplicas ?? 0, spec?.replicas ?? 1];
    const { leader, fault, lease } = observesOnly ? {} : await leaderIn(namespace, list, now);
    operators.push({
      ...{ namespace, available, replicas, ...(leader !== undefined && { leader }) },
      ...(restraints.length > 0 && { restraints }),
    });
    const trouble = available === 0 ? unavailable(namespace, replicas) : fault;
    // An operator for other kinds or namespaces doesn't matter here.
    const matters = places.length === 0 || places.some((place) => covers(operator, place));
    if (trouble !== undefined && matters) notes.add(trouble);
    // One of another build is over.
    for (const { kind, build, why } of lease ? stoppedRollouts(lease) : [])
      if (places.some((place) => place.kind.name === kind && place.mentions?.(build)))
        notes.add(
          `The rollout of ${kind} by build ${build} has stopped: ${why}. "reconstruct release --resume ${kind}" has it go on`,
        );
  }
  return { operators, unattended, notes: [...notes] };
}

function unattendedNote(place: KindInNamespace, found: readonly InstalledOperator[]): string {
  const { kind, namespace } = place;
  const observer = found.find((operator) => covers(operator, place))?.namespace;
  const why =
    observer === undefined
      ? 'none is installed for it. Install one with "reconstruct install --apply" and the options in use; one started with ' +
        '"reconstruct run" isn\'t seen here'
      : `the one in ${observer} has --observe-only, and writes nothing. "kubectl logs -n ${observer} deployment/${INSTALL_NAME}" ` +
        'shows what it would do';
  return `No operator looks after ${kind.type.kind}${namespace === undefined ? '' : ` in ${namespace}`}: ${why}`;
}

function unavailable(namespace: string, replicas: number): string {
  const what = `The operator in ${namespace} isn't ready`;
  return replicas === 0
    ? `${what}: it has no replicas. Start it with "kubectl scale deployment ${INSTALL_NAME} -n ${namespace} --replicas 2"`
    : `${what}. Find out why with "kubectl describe pods -n ${namespace} -l app.kubernetes.io/name=${INSTALL_NAME}"`;
}

/** Reads the leader, or why there is none; neither where the lease may not be read. */
async function leaderIn(
  namespace: string,
  list: List,
  now: Date,
): Promise<{ readonly leader?: string; readonly fault?: string; readonly lease?: AnyObject }> {
  const leases = await list({ type: leaseType, namespace, name: LEASE_NAME }).catch(() => undefined);
  if (!leases) return {};
  const [lease] = leases;
  const { spec = {} } = (lease ?? {}) as Wire<V1Lease>;
  const { holderIdentity = '', leaseDurationSeconds = 0, renewTime } = spec;
  const isHeld = holderIdentity !== '' && renewTime !== undefined;
  const late = isHeld ? now.getTime() - Date.parse(renewTime) - leaseDurationSeconds * 1000 : Infinity;
  if (lease && late <= TOLERATED_MILLISECONDS) return { leader: holderIdentity, lease };
  return {
    fault:
      `The operator in ${namespace} does nothing: its lease ${isHeld ? `was renewed last at ${renewTime}` : 'has no holder'}. ` +
      `Find out why with "kubectl logs -n ${namespace} deployment/${INSTALL_NAME}"`,
  };
}

interface OperatorProps {
  readonly cluster: Pick<ClusterApi, 'find' | 'list'>;
  readonly operatorNamespace?: string | undefined;
  readonly warn: (line: string) => void;
}

/** Returns a function that reads the installed operators once, or why they may not be read. */
function readOnce({ cluster, operatorNamespace }: OperatorProps) {
  let reading: Promise<readonly InstalledOperator[] | OperatorError> | undefined;
  return () =>
    (reading ??= installedOperators(cluster, operatorNamespace).catch((error: unknown) => {
      if (error instanceof OperatorError) return error;
      throw error;
    }));
}

interface AppliedResource {
  readonly input: { readonly kind: Kind };
  readonly before?: AnyObject;
  readonly after: AnyObject;
}

/**
 * Returns a function that finds the operator which is responsible for a custom resource. Where operators may not be read,
 * it refuses a custom resource whose status an operator has written: two writers would fight.
 */
export function responsibleOperator(
  props: OperatorProps,
): (resource: AppliedResource) => Promise<InstalledOperator | undefined> {
  const { operatorNamespace, warn } = props;
  const read = readOnce(props);
  return async ({ input: { kind }, before, after }) => {
    const found = await read();
    if (!(found instanceof OperatorError)) {
      if (operatorNamespace !== undefined && found.length === 0)
        warn(`There is no operator in ${operatorNamespace}: what is made of these is applied here`);
      return found.find((operator) => isResponsible(operator, { kind, namespace: after.metadata.namespace }));
    }
    if (found.reason !== 'Forbidden') throw found;
    warn(
      `Whether an operator is installed can't be seen (${found.message}): none is assumed, but for custom resources ` +
        'whose status one has written; name its namespace with --operator-namespace',
    );
    // By default of its schema, the observed generation is -1.
    const { observedGeneration = -1, conditions } = statusOf(before ?? after);
    if (!before || (observedGeneration < 0 && conditions.length === 0)) return undefined;
    throw new CliError(
      [
        `${describeRef(before)}: an operator has written its status, and whether it still looks after it can't be seen ` +
          `(${found.message}); name the namespace where it is, or was, with --operator-namespace, or apply the custom ` +
          'resource with "kubectl apply", and the operator does the rest',
        'Nothing was written',
      ],
      3,
    );
  };
}

export interface OperatorContextProps extends OperatorProps {
  readonly render: Render;
  /** Parses a file of the installed operator. @throws CliError where the text can't be used */
  readonly parse: (...text: Parameters<SectionsParser>) => Promise<Sections>;
  /** Given flags win over those of the operator. */
  readonly flags: FlagValues;
  readonly watchNamespaces?: readonly string[] | undefined;
  readonly files?: AdminFiles;
  readonly note: (line: string) => void;
}

export type ContextFor = (
  kind: Kind,
  namespaces: readonly string[],
) => Promise<KindContext & Pick<InstalledOperator, 'drift'>>;

/**
 * Returns the context that the installed operator has, as far as it isn't given; the defaults of `install` where there is
 * none, or it may not be read. Assumptions that matter are warned of.
 */
export function operatorContext(props: OperatorContextProps): ContextFor {
  const { render, watchNamespaces, operatorNamespace, warn } = props;
  const read = readOnce(props);
  const readings = new Map<string, Promise<Sections | undefined>>();
  return async (kind, namespaces) => {
    const found = await read();
    let files: AdminFiles = { ...props.files };
    const unknown = ADMIN_FILES.filter((name) => kind[`${name}Schema` as const] && !files[name]);
    const isAssumed = unknown.length > 0 || (operatorNamespace === undefined && kind.flags !== undefined);
    if (found instanceof OperatorError && isAssumed)
      warn(
        `Which operator is installed can't be seen (${found.message}): one in ${operatorNamespace ?? DEFAULT_NAMESPACE}, without ` +
          `flags and settings, that forbids nothing, is assumed; say more with ${['operator-namespace', ...unknown].map((name) => `--${name}`).join(', ')} and the flags that "run" has`,
      );
    const operator = found instanceof OperatorError ? undefined : choose(kind, found, namespaces, warn);
    if (operator)
      for (const name of unknown) {
        const key = `${operator.namespace} ${name}`;
        const reading = readings.get(key) ?? readStored(name, operator, props);
        readings.set(key, reading);
        files = { ...files, [name]: await reading };
      }
    const watched = watchNamespaces ?? operator?.watchNamespaces;
    const section = files.policy?.[kind.name];
    return {
      render: (rendered, cr, inputs) => render(rendered, cr, { ...inputs, ...files }),
      inForce: { current: files },
      flags: { ...(operator && flagsOf(operator, kind.flags ?? [])), ...props.flags },
      operatorNamespace: operatorNamespace ?? operator?.namespace ?? DEFAULT_NAMESPACE,
      ...(section !== undefined && { policy: section }),
      ...(watched && { namespaces: watched }),
      ...(operator?.drift && { drift: operator.drift }),
    };
  };
}

/** Chooses the operator that watches one of the namespaces, where several are responsible for a kind. */
function choose(
  kind: Kind,
  all: readonly InstalledOperator[],
  namespaces: readonly string[],
  warn: (line: string) => void,
): InstalledOperator | undefined {
  const ofKind = all.filter((operator) => covers(operator, { kind }));
  const watching = ofKind.filter((operator) =>
    namespaces.some((namespace) => covers(operator, { kind, namespace })),
  );
  const candidates = watching.length > 0 ? watching : ofKind;
  const [first] = candidates;
  if (first && candidates.length > 1)
    warn(
      `${kindName(kind)} is looked after by operators in ${candidates.map(({ namespace }) => namespace).join(', ')}: ` +
        `the one in ${first.namespace} is taken; name one with --operator-namespace`,
    );
  return first;
}

/**
 * Reads a file of an operator as its ConfigMap has it now: an empty one where it has none, undefined where it may not be read.
 *
 * **Caveats.** An operator takes up a change within a minute or so, and some of it at its next start.
 *
 * @throws CliError with exit code 3 where it is invalid: the operator continues with the one before, which only it knows
 */
async function readStored(
  name: AdminFile,
  operator: InstalledOperator,
  { cluster, parse, warn, note }: OperatorContextProps,
): Promise<Sections | undefined> {
  const { namespace } = operator;
  const { assumed, it, previous } = WORDS[name];
  try {
    const stored = await storedFile(name, cluster, operator);
    if (!stored) return {};
    const sections = await parse(name, stored.name, stored.text);
    note(`Judged by the ${name} of the operator in ${namespace}: ${stored.name}`);
    return sections;
  } catch (error) {
    if (error instanceof CliError) {
      const consequence = `The operator in ${namespace} continues with the ${name} that it had before; correct ${it}, or give ${previous} with --${name}`;
      throw new CliError([...error.lines, consequence], 3);
    }
    if (!(error instanceof OperatorError)) throw error;
    warn(
      `The ${name} of the operator in ${namespace} can't be read (${error.message}): ${assumed} is assumed; give ${it} with --${name}`,
    );
    return undefined;
  }
}
