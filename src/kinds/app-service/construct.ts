import type {
  V1PodDisruptionBudgetSpec,
  V2HorizontalPodAutoscalerSpec,
  V2MetricSpec,
} from '@kubernetes/client-node';
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { OperatorError } from '../../contract/error.js';
import type { CustomResourceProps } from '../../contract/kind.js';
import { deploymentSpec } from './deployment.js';
import { childMetadata, given, identityOf, podSelector } from './spec.js';
import type { AppServiceSpec, Autoscaling, Identity, Wire } from './spec.js';
import { checkPolicy } from './policy.js';
import { routeSpec, serviceSpec } from './service.js';

/** What the construct of AppService is given. */
export type AppServiceProps = CustomResourceProps<AppServiceSpec>;

/**
 * An application: a Deployment, a Service where there are ports, and on demand a HorizontalPodAutoscaler, a
 * PodDisruptionBudget and an HTTPRoute, all named as the custom resource.
 *
 * Only what the custom resource says is rendered, since every rendered field is owned and put right. The one
 * exception is `imagePullPolicy: IfNotPresent`, without which the API server would choose by the image's tag.
 *
 * @throws OperatorError `InvalidName`, `PortNameConflict`, `RoutePortNotFound` or `PolicyDenied`
 */
export class AppService extends Construct {
  constructor(scope: Construct, id: string, props: AppServiceProps) {
    super(scope, id);
    const { spec } = props;
    const app = identityOf(props);
    checkName(app.name);
    checkPolicy(props);

    this.node.defaultChild = this.add('apps/v1', 'Deployment', app, deploymentSpec(app, spec));
    const onDemand = [
      ['v1', 'Service', serviceSpec(app, spec)],
      ['autoscaling/v2', 'HorizontalPodAutoscaler', autoscalerSpec(app, spec)],
      ['policy/v1', 'PodDisruptionBudget', disruptionBudgetSpec(app, spec)],
      ['gateway.networking.k8s.io/v1', 'HTTPRoute', routeSpec(app, spec)],
    ] as const;
    for (const [apiVersion, kind, childSpec] of onDemand) {
      if (childSpec) this.add(apiVersion, kind, app, childSpec);
    }
  }

  private add(apiVersion: string, kind: string, app: Identity, spec: object): ApiObject {
    return new ApiObject(this, kind, { apiVersion, kind, metadata: childMetadata(app), spec });
  }
}

/**
 * A custom resource may have a longer name, and one with dots. The container that is named after it may not, and
 * a label's value, which is what the selector holds, has at most 63 characters too.
 */
function checkName(name: string): void {
  if (name.length <= 63 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(name)) return;
  throw new OperatorError({
    reason: 'InvalidName',
    path: ['metadata', 'name'],
    message:
      `metadata.name: "${name}" can't name a container: at most 63 lower-case letters, digits and "-" are allowed, ` +
      'with a letter or digit at both ends. Create the AppService under another name',
  });
}

/**
 * It scales the Deployment, not the AppService, so that `size` stays as it is written in Git.
 */
function autoscalerSpec(
  { name }: Identity,
  { autoscaling }: AppServiceSpec,
): Wire<V2HorizontalPodAutoscalerSpec> | undefined {
  if (!autoscaling) return undefined;
  return {
    scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name },
    ...given(autoscaling, 'minReplicas', 'maxReplicas', 'behavior'),
    ...given({ metrics: metrics(autoscaling) }, 'metrics'),
  };
}

/** The two that need only a number come first, then those that are given whole. */
function metrics({ cpu, memory, metrics: others = [] }: Autoscaling): Wire<V2MetricSpec>[] {
  return [...utilization('cpu', cpu), ...utilization('memory', memory), ...others];
}

/** @param percent of the request, on average over the pods */
function utilization(name: 'cpu' | 'memory', percent: number | undefined): Wire<V2MetricSpec>[] {
  if (percent === undefined) return [];
  return [
    { type: 'Resource', resource: { name, target: { type: 'Utilization', averageUtilization: percent } } },
  ];
}

/**
 * By `maxUnavailable`, since a `minAvailable` that equals the number of replicas stops every drain of a node. Pods
 * that aren't ready may always go: they serve nobody, and a broken application must not hold a node either.
 * @see https://kubernetes.io/docs/tasks/run-application/configure-pdb/#unhealthy-pod-eviction-policy
 */
function disruptionBudgetSpec(
  app: Identity,
  spec: AppServiceSpec,
): Wire<V1PodDisruptionBudgetSpec> | undefined {
  if (!spec.disruption || mostReplicas(spec) < 2) return undefined;
  return {
    maxUnavailable: spec.disruption.maxUnavailable ?? 1,
    unhealthyPodEvictionPolicy: 'AlwaysAllow',
    selector: podSelector(app),
  };
}

/**
 * What there may be at once, a rollout's surplus aside. With an autoscaler that is its maximum, whatever the size:
 * the size is only where it starts. One replica can't be both moved and kept, so a budget for it would promise
 * nothing, or block a drain.
 */
function mostReplicas({ size, autoscaling }: AppServiceSpec): number {
  return autoscaling ? autoscaling.maxReplicas : size;
}
