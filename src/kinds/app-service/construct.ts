import type { V1Container, V1DeploymentSpec, V1ServiceSpec } from '@kubernetes/client-node';
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { OperatorError } from '../../contract/error.js';
import type { CustomResourceProps } from '../../contract/kind.js';
import { childLabels, selectorLabels } from '../../contract/names.js';
import type { NamedKind } from '../../contract/names.js';
import { containerPorts, DEFAULT_PROTOCOL } from './container-ports.js';
import type { AppServiceSpec } from './spec.js';
import type { Wire } from './wire.js';

export type AppServiceProps = CustomResourceProps<AppServiceSpec>;

/**
 * An application: a Deployment and, where there are ports, a NodePort Service, both named as the custom resource.
 *
 * Only what the custom resource says is rendered, since every rendered field is owned and put right. The one
 * exception is `imagePullPolicy: IfNotPresent`, without which the API server would choose by the image's tag.
 *
 * @throws OperatorError `InvalidName` or `PortNameConflict`
 */
export class AppService extends Construct {
  constructor(scope: Construct, id: string, props: AppServiceProps) {
    super(scope, id);
    const { name, namespace } = props.metadata;
    const kind = { apiVersion: props.apiVersion ?? 'kosmos.io/v1', kind: 'AppService' };
    checkName(name);
    const metadata = { name, ...(namespace && { namespace }), labels: childLabels(kind, name) };

    this.node.defaultChild = new ApiObject(this, 'Deployment', {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata,
      spec: deploymentSpec(kind, name, props.spec),
    });
    if (props.spec.ports?.length) {
      new ApiObject(this, 'Service', {
        apiVersion: 'v1',
        kind: 'Service',
        metadata,
        spec: serviceSpec(kind, name, props.spec.ports),
      });
    }
  }
}

/** @throws OperatorError `PortNameConflict` */
export function deploymentSpec(kind: NamedKind, name: string, spec: AppServiceSpec): Wire<V1DeploymentSpec> {
  return {
    replicas: spec.size,
    selector: { matchLabels: selectorLabels(kind, name) },
    template: {
      metadata: { labels: childLabels(kind, name) },
      spec: { containers: [container(name, spec)] },
    },
  };
}

/** Each port passes through whole, so that fields which Kubernetes adds later arrive too. */
export function serviceSpec(
  kind: NamedKind,
  name: string,
  ports: NonNullable<AppServiceSpec['ports']>,
): Wire<V1ServiceSpec> {
  return {
    type: 'NodePort',
    selector: selectorLabels(kind, name),
    ports: ports.map((port) => ({
      ...port,
      protocol: port.protocol ?? DEFAULT_PROTOCOL,
      targetPort: port.targetPort ?? port.port,
    })),
  };
}

function container(name: string, { image, ports, resources, envs }: AppServiceSpec): Wire<V1Container> {
  return {
    name,
    image,
    imagePullPolicy: 'IfNotPresent',
    ...(ports?.length && { ports: containerPorts(ports) }),
    ...(resources && { resources }),
    ...(envs?.length && { env: envs }),
  };
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
