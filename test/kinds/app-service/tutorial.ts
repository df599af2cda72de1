import { childLabels, selectorLabels } from '../../../src/contract/names.js';
import { containerPorts } from '../../../src/kinds/app-service/service.js';
import type { AppServiceSpec } from '../../../src/kinds/app-service/spec.js';

/**
 * What an AppService of the tutorial's fields has been rendered to since the first release. Written down a second
 * time, so that no field which is added later can change it.
 */
export function tutorialObjects(name: string, spec: AppServiceSpec): object[] {
  const kind = { apiVersion: 'kosmos.io/v1', kind: 'AppService' };
  const metadata = { name, labels: childLabels(kind, name) };
  const { size, image, ports = [], resources, envs = [] } = spec;
  const container = {
    ...{ name, image, imagePullPolicy: 'IfNotPresent' },
    ...(ports.length > 0 && { ports: containerPorts(ports) }),
    ...(resources && { resources }),
    ...(envs.length > 0 && { env: envs }),
  };
  const deployment = {
    replicas: size,
    selector: { matchLabels: selectorLabels(kind, name) },
    template: { metadata: { labels: metadata.labels }, spec: { containers: [container] } },
  };
  const service = {
    type: 'NodePort',
    selector: selectorLabels(kind, name),
    ports: ports.map((port) => ({
      ...port,
      protocol: port.protocol ?? 'TCP',
      targetPort: port.targetPort ?? port.port,
    })),
  };
  return [
    { apiVersion: 'apps/v1', kind: 'Deployment', metadata, spec: deployment },
    ...(ports.length > 0 ? [{ apiVersion: 'v1', kind: 'Service', metadata, spec: service }] : []),
  ];
}
