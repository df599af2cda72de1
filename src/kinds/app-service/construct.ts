import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { OperatorError } from '../../contract/error.js';
import type { CustomResourceProps } from '../../contract/kind.js';
import { autoscalerSpec } from './autoscaler.js';
import { checkPolicy } from './check-policy.js';
import { deploymentSpec } from './deployment.js';
import { disruptionBudgetSpec } from './disruption.js';
import { childMetadata, identityOf } from './metadata.js';
import type { Identity } from './metadata.js';
import { routeSpec } from './route.js';
import { serviceSpec } from './service.js';
import type { AppServiceSpec } from './spec.js';

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
