import { valuesFor } from './values.js';
import type { Spec } from './shape.js';

const planned = valuesFor(['ports', '[]', 'nodePort']) as readonly number[];

/**
 * The node ports that are given to custom resources, each of which may be there once in a cluster: those of the plan,
 * moved up for each custom resource. They lie where the cluster itself chooses only once the rest is used up.
 * @see https://kubernetes.io/docs/concepts/services-networking/service/#avoid-nodeport-collisions
 */
export class NodePorts {
  private readonly offset: number;

  /** @param place 0 for the first custom resource, 1 for the next */
  constructor(place: number) {
    this.offset = place * planned.length;
  }

  /** A spec of the plan, with node ports of its own. */
  given(spec: Spec): Spec {
    return moved(spec, this.offset);
  }

  /** The other way round. */
  planned(spec: Spec): Spec {
    return moved(spec, -this.offset);
  }

  /** The node port of the plan that stands behind one in the cluster. */
  plannedPort(port: number): number {
    return port - this.offset;
  }
}

function moved(spec: Spec, by: number): Spec {
  const ports = spec.ports as readonly { nodePort?: number }[] | undefined;
  if (!ports) return spec;
  const others = ports.map((port) =>
    port.nodePort === undefined ? port : { ...port, nodePort: port.nodePort + by },
  );
  return { ...spec, ports: others };
}
