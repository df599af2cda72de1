import type { AnyObject } from '../../../src/contract/object.js';
import type { AppServiceSpec } from '../../../src/kinds/app-service/spec.js';
import { exampleDocument } from '../../full/support/examples.js';

/** The specs of some examples in one; of two with the same field, that of the later one. */
function together(...names: readonly string[]): AppServiceSpec {
  const specs = names.map((name) => exampleDocument(`appservice/${name}.yaml`).spec as AppServiceSpec);
  return Object.assign({}, ...specs) as AppServiceSpec;
}

/** So that two can have the same spec, and their pods are there at once. */
function repeatable({ ports, files, ...spec }: AppServiceSpec): AppServiceSpec {
  const { minReadySeconds: _, serviceAccountName: _account, ...rest } = spec;
  return {
    ...rest,
    ...(ports && { ports: ports.map(({ nodePort, ...port }) => port) }),
    ...(files && { files: files.filter((file) => !file.persistentVolumeClaim) }),
  };
}

/** Custom resources that lead to everything that an AppService makes, and nearly all of what its fields can be. */
export const appServiceSamples: readonly AnyObject[] = [
  together('probes', 'rollout', 'envs', 'resources', 'autoscaling', 'route'),
  together('recreate', 'files', 'command', 'security', 'ports'),
  together('topology-spread', 'autoscaling-metrics', 'probes-grpc', 'service'),
].map((spec, index) => ({
  ...{ apiVersion: 'kosmos.io/v1', kind: 'AppService', metadata: { name: `sample-${index}` } },
  spec: repeatable(spec),
}));
