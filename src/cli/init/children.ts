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
  const servers = SERVERS.filter((name) => wanted.has(name));
  const workloads = [...servers, ...TASKS.filter((name) => wanted.has(name))];
  if (servers.length > 1)
    throw refused(
      `${servers.join(' and ')} each run spec.image for good; give one, and add the other by hand`,
    );
  for (const [child, targets] of NEEDED)
    if (wanted.has(child) && !targets.some((target) => wanted.has(target)))
      throw refused(`${child} is about another object; add ${targets.join(' or ')}`);
  if (wanted.has('PersistentVolumeClaim')) {
    const clashing = NOT_WITH_CLAIM.filter((name) => wanted.has(name));
    if (clashing.length > 0)
      throw refused(
        `a PersistentVolumeClaim is mounted by one pod, on one node; leave it out, or ${clashing.join(', ')}`,
      );
    if (workloads.length > 1)
      throw refused(`a PersistentVolumeClaim is mounted on one node; keep one of ${workloads.join(', ')}`);
  }
  return CHILDREN.filter((child) => wanted.has(child));
}

/** Children that need one of others. */
const NEEDED: readonly (readonly [Child, readonly Child[]])[] = [
  ['Service', SERVERS],
  ['Ingress', ['Service']],
  ['HorizontalPodAutoscaler', ['Deployment', 'StatefulSet']],
  ['PodDisruptionBudget', ['Deployment', 'StatefulSet']],
  ['NetworkPolicy', [...SERVERS, ...TASKS]],
];

/** They have several pods, which may be on several nodes; a StatefulSet claims a volume for each by itself. */
const NOT_WITH_CLAIM: readonly Child[] = [
  ...(['StatefulSet', 'DaemonSet', 'HorizontalPodAutoscaler', 'PodDisruptionBudget'] as const),
];

function childNamed(name: string): Child {
  const found = CHILDREN.find((child) => child.toLowerCase() === name.toLowerCase());
  if (found) return found;
  const meant = suggest(name, CHILDREN) ?? suggest(name.replace(/s$/i, ''), CHILDREN);
  throw refused(
    `there is no ${name} in the template${meant ? `; did you mean ${meant}?` : ''}; it has ${CHILDREN.join(', ')}. Add any ` +
      'other kind in the namespace by hand, to the construct and to children in src/kind.ts. Kinds of the whole cluster, ' +
      'Roles and Secrets are better created by an admin: they would need rights or values that users of the kind lack',
  );
}

function refused(why: string): CliError {
  return new CliError(`--children: ${why}`, 2);
}
