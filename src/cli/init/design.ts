import { suggest } from '../../contract/suggest.js';
import { CliError } from '../exit.js';

/** The kinds that `init` writes code for, in the order in which they are applied. */
export const CHILDREN = {
  ServiceAccount: 'v1',
  ConfigMap: 'v1',
  PersistentVolumeClaim: 'v1',
  Service: 'v1',
  Deployment: 'apps/v1',
  StatefulSet: 'apps/v1',
  DaemonSet: 'apps/v1',
  Job: 'batch/v1',
  CronJob: 'batch/v1',
  HorizontalPodAutoscaler: 'autoscaling/v2',
  PodDisruptionBudget: 'policy/v1',
  Ingress: 'networking.k8s.io/v1',
  NetworkPolicy: 'networking.k8s.io/v1',
} as const;

export type Child = keyof typeof CHILDREN;

const SERVERS = ['Deployment', 'StatefulSet', 'DaemonSet'] as const;
const TASKS = ['Job', 'CronJob'] as const;

/** Which children a kind has, and what follows from it for each of them. */
export interface Design {
  readonly children: readonly Child[];
  /** Runs for as long as the custom resource is there. @default - nothing does */
  readonly server?: (typeof SERVERS)[number];
  /** All that runs pods. */
  readonly workloads: readonly Child[];
}

export function has({ children }: Design, child: Child): boolean {
  return children.includes(child);
}

/**
 * @param names as given with `--children`
 * @throws CliError with exit code 2 for a kind that isn't known, and for kinds that don't go together
 */
export function designOf(names: readonly string[]): Design {
  const wanted = new Set(names.map(childNamed));
  const children = all.filter((child) => wanted.has(child));
  for (const { when, why } of CONFLICTS) {
    if (when(wanted)) throw refused(why);
  }
  const server = SERVERS.find((child) => wanted.has(child));
  const workloads = children.filter((child) => [...SERVERS, ...TASKS].some((each) => each === child));
  return { children, workloads, ...(server && { server }) };
}

const all = Object.keys(CHILDREN) as Child[];

function childNamed(name: string): Child {
  const found = all.find((child) => child.toLowerCase() === name.toLowerCase());
  if (found) return found;
  const reason = REFUSED[name.toLowerCase()];
  if (reason !== undefined) throw refused(`${name}: ${reason}`);
  const meant = suggest(name, all) ?? suggest(name.replace(/s$/i, ''), all);
  throw refused(
    `there is no kind ${JSON.stringify(name)} that init knows${meant ? `; did you mean ${meant}?` : ''}; it knows ` +
      `${all.join(', ')}. Any other kind is added by hand, to the construct and to children in src/kind.ts`,
  );
}

const CLUSTER_SCOPED =
  "it belongs to the whole cluster, and can't be owned by a custom resource that is in a namespace; " +
  'leave it out, and have an admin make it';

/** Kinds that somebody may well ask for, by their names in lower case. */
const REFUSED: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    [
      ...['namespace', 'node', 'persistentvolume', 'clusterrole', 'clusterrolebinding', 'storageclass'],
      ...[
        'ingressclass',
        'priorityclass',
        'runtimeclass',
        'customresourcedefinition',
        'gatewayclass',
        'volumesnapshotclass',
      ],
      ...[
        'mutatingwebhookconfiguration',
        'validatingwebhookconfiguration',
        'validatingadmissionpolicy',
        'apiservice',
        'csidriver',
      ],
    ].map((kind) => [kind, CLUSTER_SCOPED]),
  ),
  pod: "a Pod that ends isn't started again; ask for a Deployment, a StatefulSet, a DaemonSet or a Job",
  replicaset: 'a Deployment makes its own; ask for a Deployment',
  secret:
    'what is secret would have to stand in the custom resource; leave it out, and have the custom resource name a ' +
    'Secret that is there',
  role: 'the operator would need all rights that it gives away; leave it out, and have an admin make it',
  rolebinding:
    'the operator would need all rights that it gives away; leave it out, and have an admin make it',
};

interface Conflict {
  readonly when: (children: ReadonlySet<Child>) => boolean;
  readonly why: string;
}

const anyOf = (children: ReadonlySet<Child>, ...names: readonly Child[]): boolean =>
  names.some((name) => children.has(name));

/** What makes no sense together, or not alone. */
const CONFLICTS: readonly Conflict[] = [
  {
    when: (children) => SERVERS.filter((name) => children.has(name)).length > 1,
    why: 'Deployment, StatefulSet and DaemonSet each run spec.image for good; give one, and add another by hand',
  },
  {
    when: (children) => children.has('Service') && !anyOf(children, ...SERVERS),
    why: 'Service leads to pods; add Deployment, StatefulSet or DaemonSet',
  },
  {
    when: (children) => children.has('Ingress') && !children.has('Service'),
    why: 'Ingress leads to a Service; add Service',
  },
  {
    when: (children) =>
      children.has('HorizontalPodAutoscaler') && !anyOf(children, 'Deployment', 'StatefulSet'),
    why: 'HorizontalPodAutoscaler needs something that it can scale; add Deployment or StatefulSet',
  },
  {
    when: (children) => children.has('PodDisruptionBudget') && !anyOf(children, 'Deployment', 'StatefulSet'),
    why: 'PodDisruptionBudget counts pods that may be elsewhere; add Deployment or StatefulSet',
  },
  {
    when: (children) => children.has('NetworkPolicy') && !anyOf(children, ...SERVERS, ...TASKS),
    why: 'NetworkPolicy is about pods; add Deployment, StatefulSet, DaemonSet, Job or CronJob',
  },
  {
    when: (children) => children.has('PersistentVolumeClaim') && children.has('StatefulSet'),
    why: 'a StatefulSet claims a volume for each of its pods by itself; leave out PersistentVolumeClaim',
  },
  {
    when: (children) => children.has('PersistentVolumeClaim') && children.has('DaemonSet'),
    why: 'a PersistentVolumeClaim is mounted on one node, and a DaemonSet runs on all; leave out one of them',
  },
  {
    when: (children) =>
      children.has('PersistentVolumeClaim') &&
      [...SERVERS, ...TASKS].filter((name) => children.has(name)).length > 1,
    why: 'a PersistentVolumeClaim is mounted on one node, and several workloads may be on several; keep one of them',
  },
  {
    when: (children) => anyOf(children, 'PersistentVolumeClaim') && children.has('HorizontalPodAutoscaler'),
    why: "a PersistentVolumeClaim is mounted on one node, so there can't be more pods; leave out HorizontalPodAutoscaler",
  },
  {
    when: (children) => children.has('PersistentVolumeClaim') && children.has('PodDisruptionBudget'),
    why: 'with a PersistentVolumeClaim there is one pod, which has to be able to move; leave out PodDisruptionBudget',
  },
];

function refused(why: string): CliError {
  return new CliError(`--children: ${why}`, 2);
}
