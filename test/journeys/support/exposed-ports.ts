import type { V1Service } from '@kubernetes/client-node';
import { expect } from 'vitest';
import type { Wire } from '../../../src/author/kubernetes-types.js';
import { eventually, services } from '../../support/cluster.js';
import type { Subject } from '../../support/subject.js';

/** As the status of an AppService tells it. */
export interface ExposedPort {
  readonly name?: string;
  readonly port: number;
  readonly protocol: string;
  readonly nodePort: number;
}

/**
 * Waits until the Service of an AppService is as the AppService says, and the status as the Service. Returns the ports
 * of both.
 */
export async function exposedPorts(apps: Subject, name: string): Promise<readonly ExposedPort[]> {
  await apps.asRendered(name);
  return eventually(async () => {
    const { spec } = await apps.cluster.get<Wire<V1Service>>(apps.childPlace(services, name));
    const ports = spec!.ports!.map(({ name, port, protocol, nodePort }) => ({
      ...(name !== undefined && { name }),
      ...{ port, protocol: protocol!, nodePort: nodePort! },
    }));
    const { status, metadata } = await apps.get(name);
    expect(status?.ports).toEqual(ports);
    expect(status?.observedGeneration).toBe(metadata.generation);
    return ports;
  });
}
