import { suggest } from '../../contract/suggest.js';
import { CliError } from '../exit.js';

/** Kinds of objects that the template of a project can create, in the order in which they are applied. */
export const CHILDREN = [
  ...['ServiceAccount', 'ConfigMap', 'PersistentVolumeClaim', 'Service', 'Deployment', 'StatefulSet'],
  ...['DaemonSet', 'Job', 'CronJob', 'HorizontalPodAutoscaler', 'PodDisruptionBudget', 'Ingress'],
  'NetworkPolicy',
] as const;

export type Child = (typeof CHILDREN)[number];

/** Workloads that run for as long as the custom resource exists; a project has at most one. */
export const SERVERS = ['Deployment', 'StatefulSet', 'DaemonSet'] as const;
export const TASKS = ['Job', 'CronJob'] as const;

/**
 * Reads the value of `--children`.
 *
 * @returns the kinds in the order of `CHILDREN`
 * @throws CliError with exit code 2 for an unknown kind, and for kinds that don't go together
 */
export function readChildren(names: readonly string[]): Child[] {
  const wanted = new Set(names.map(childNamed));
  const needs = (child: Child, others: readonly Child[]): boolean =>
    wanted.has(child) && !others.some((other) => wanted.has(other));
  const workloads = [...SERVERS, ...TASKS].filter((name) => wanted.has(name));
  const claims = wanted.has('PersistentVolumeClaim');
  const conflicts: [isConflict: boolean, remedy: string][] = [
    [
      SERVERS.filter((name) => wanted.has(name)).length > 1,
      'Deployment, StatefulSet and DaemonSet each run spec.image for good; give one, and add another by hand',
    ],
    [needs('Service', SERVERS), 'Service leads to pods; add Deployment, StatefulSet or DaemonSet'],
    [needs('Ingress', ['Service']), 'Ingress leads to a Service; add Service'],
    [
      needs('HorizontalPodAutoscaler', ['Deployment', 'StatefulSet']),
      'HorizontalPodAutoscaler needs a target that can be scaled; add Deployment or StatefulSet',
    ],
    [
      needs('PodDisruptionBudget', ['Deployment', 'StatefulSet']),
      'PodDisruptionBudget counts pods that can move; add Deployment or StatefulSet',
    ],
    [
      wanted.has('NetworkPolicy') && workloads.length === 0,
      'NetworkPolicy is about pods; add Deployment, StatefulSet, DaemonSet, Job or CronJob',
    ],
    [
      claims && wanted.has('StatefulSet'),
      'a StatefulSet claims a volume for each of its pods by itself; leave out PersistentVolumeClaim',
    ],
    [
      claims && wanted.has('DaemonSet'),
      'a PersistentVolumeClaim is mounted on one node, and a DaemonSet runs on all; leave out one of them',
    ],
    [
      claims && workloads.length > 1,
      'a PersistentVolumeClaim is mounted on one node, and several workloads may be on several; keep one of them',
    ],
    [
      claims && wanted.has('HorizontalPodAutoscaler'),
      "a PersistentVolumeClaim is mounted on one node, so there can't be more pods; leave out HorizontalPodAutoscaler",
    ],
    [
      claims && wanted.has('PodDisruptionBudget'),
      'with a PersistentVolumeClaim there is one pod, which has to be able to move; leave out PodDisruptionBudget',
    ],
  ];
  const conflict = conflicts.find(([isConflict]) => isConflict);
  if (conflict) throw refused(conflict[1]);
  return CHILDREN.filter((child) => wanted.has(child));
}

const CLUSTER_SCOPED =
  /^(namespace|node|persistentvolume|clusterrole(binding)?|(storage|ingress|priority|runtime|gateway|volumesnapshot)class|customresourcedefinition|(mutating|validating)webhookconfiguration|validatingadmissionpolicy|apiservice|csidriver)$/;

/** Kinds that a user may well ask for, by their names in lower case, and why they aren't offered. */
const REFUSED: Readonly<Record<string, string>> = {
  pod: "a Pod that ends isn't started again; ask for a Deployment, a StatefulSet, a DaemonSet or a Job",
  replicaset: 'a Deployment creates its own; ask for a Deployment',
  secret:
    'its values would have to be in the custom resource; leave it out, and have the custom resource name an existing Secret',
  role: 'the operator would need all rights that it grants; leave it out, and have an admin create it',
  rolebinding: 'the operator would need all rights that it grants; leave it out, and have an admin create it',
};

function childNamed(name: string): Child {
  const lower = name.toLowerCase();
  const found = CHILDREN.find((child) => child.toLowerCase() === lower);
  if (found) return found;
  if (CLUSTER_SCOPED.test(lower))
    throw refused(
      `${name}: it belongs to the whole cluster, and can't be owned by a custom resource in a namespace; leave it out, ` +
        'and have an admin create it',
    );
  const reason = REFUSED[lower];
  if (reason !== undefined) throw refused(`${name}: ${reason}`);
  const meant = suggest(name, CHILDREN) ?? suggest(name.replace(/s$/i, ''), CHILDREN);
  throw refused(
    `there is no kind ${JSON.stringify(name)} in the template${meant ? `; did you mean ${meant}?` : ''}; it has ` +
      `${CHILDREN.join(', ')}. Add any other kind by hand, to the construct and to children in src/kind.ts`,
  );
}

function refused(why: string): CliError {
  return new CliError(`--children: ${why}`, 2);
}
