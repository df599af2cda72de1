import { Api } from '../../engine/api.js';
import type { Clock } from '../../engine/clock.js';
import { UndiciTransport } from '../../engine/undici-transport.js';
import { ClusterClient } from '../cluster-client.js';
import { answering } from '../diff/answering.js';
import { packageVersion } from '../version.js';
import { clusterAccess } from '../with-cluster.js';
import { Samples } from './samples.js';
import type { Stand } from './stand.js';

/** What a session has once there is a cluster. */
export interface ClusterSide {
  readonly stand: Stand;
  /** As the admin. */
  readonly api: Api;
  readonly samples: Samples;
  close(): Promise<void>;
}

export async function clusterSide(stand: Stand, clock: Clock): Promise<ClusterSide> {
  const access = await clusterAccess({ kubeconfig: stand.adminKubeconfig });
  const transport = new UndiciTransport(access, `reconstruct-dev/${packageVersion()}`);
  return {
    ...{ stand, api: new Api(transport) },
    samples: new Samples(new ClusterClient(answering(transport)), clock),
    close: () => transport.close(),
  };
}
