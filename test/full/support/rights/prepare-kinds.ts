import type { Sandbox } from '../../../../sandbox/control-plane.js';
import { appService } from '../../../../src/kinds/app-service/kind.js';
import { jobWatcher } from '../../../../src/kinds/job-watcher/kind.js';
import { streamIngress } from '../../../../src/kinds/stream-ingress/kind.js';
import { Cluster } from '../cluster.js';
import { installCrd } from '../crds.js';
import { installGatewayApi, listenerSets, referenceGrants, tcpRoutes, udpRoutes } from '../gateway-api.js';
import { httpRouteCrd } from '../http-route-crd.js';

/** Makes all kinds known to a control plane, and all that they may use. */
export async function prepareKinds(sandbox: Sandbox): Promise<void> {
  await sandbox.kubectl(['apply', '-f', '-'], { stdin: JSON.stringify(httpRouteCrd) });
  const cluster = new Cluster(sandbox);
  await installGatewayApi(cluster, [listenerSets, tcpRoutes, udpRoutes, referenceGrants]);
  await Promise.all([appService, jobWatcher, streamIngress].map((kind) => installCrd(cluster, kind)));
  await cluster.close();
}
