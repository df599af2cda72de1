import type { ConditionProps, Readiness } from '../../contract/conditions.js';
import { selectorLabels } from '../../contract/names.js';
import type { AnyObject } from '../../contract/object.js';
import type { StatusInput, StatusReport } from '../../contract/status.js';
import type { KeptPod } from './pods.js';
import type { AppServiceSpec, AppServiceStatus } from './spec.js';
import { mirroredConditions, podsOfPresentSpec, replicaCounts } from './status/deployment.js';
import type { DeploymentStatus } from './status/deployment.js';
import { liveReplicas, portSummary, runningImage, servicePorts } from './status/kept.js';
import { progressing, readiness } from './status/readiness.js';
import { routeReady, routeUrl } from './status/route.js';
import { nextSlowStart } from './status/slow-start.js';

type Input = StatusInput<AppServiceSpec, AppServiceStatus>;

/** The status of an AppService: the counters and conditions of its Deployment, and the verdict on them. */
export function appServiceStatus(input: Input): StatusReport<AppServiceStatus> {
  const deployment = child(input, 'Deployment');
  const service = child(input, 'Service');
  const status = reportedStatus(deployment);
  const image = deployment && runningImage(deployment);
  const ports = service && servicePorts(service);
  const url = input.cr.spec.route && child(input, 'HTTPRoute') && routeUrl(input.cr.spec.route);
  const pods = podsOfPresentSpec(status, input.related as unknown as readonly KeptPod[]);
  const requeueAt = nextSlowStart(pods, input.now);
  return {
    readiness: verdict(input, deployment, pods),
    ...(requeueAt && { requeueAt }),
    conditions: [...(status ? mirroredConditions(status) : []), ...accepted(input), ...routed(input)],
    fields: {
      ...(status && replicaCounts(status)),
      selector: selectorText(input),
      ...(ports && { ports, portSummary: portSummary(ports) }),
      ...(url && { url }),
      ...(image && { image }),
    },
  };
}

function child({ children }: Input, wanted: string): AnyObject | undefined {
  return children.find(({ kind }) => kind === wanted);
}

/** A Deployment's status without a generation is one that its controller hasn't written yet. */
function reportedStatus(deployment: AnyObject | undefined): DeploymentStatus | undefined {
  const status = deployment?.status as DeploymentStatus | undefined;
  return status?.observedGeneration === undefined ? undefined : status;
}

function verdict({ cr, now }: Input, deployment: AnyObject | undefined, pods: readonly KeptPod[]): Readiness {
  const { spec } = cr;
  const status = reportedStatus(deployment);
  if (!deployment || !status)
    return progressing('Pending', "The Deployment's controller has yet to report on it");
  // An autoscaler decides on the Deployment's replicas, and `size` is where it began.
  const wanted = spec.autoscaling ? (liveReplicas(deployment) ?? spec.size) : spec.size;
  return readiness({ cr, deployment, status, wanted, pods, now });
}

/** Said only where it is refused: that a policy allows something is nothing that anybody waits for. */
function accepted({ failures }: Input): ConditionProps[] {
  const error = failures.find((failure) => failure.error.reason === 'PolicyDenied')?.error;
  return error ? [{ type: 'Accepted', status: 'False', reason: error.reason, message: error.message }] : [];
}

function routed(input: Input): ConditionProps[] {
  const { route } = input.cr.spec;
  return route ? [routeReady(route, child(input, 'HTTPRoute'), input.failures)] : [];
}

function selectorText({ cr }: Input): string {
  return Object.entries(selectorLabels(cr, cr.metadata.name))
    .map(([label, value]) => `${label}=${value}`)
    .join(',');
}
