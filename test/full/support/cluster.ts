import type { SandboxClient } from '../../../sandbox/client.js';
import { resourceType } from '../../../src/contract/resource.js';
import { Cluster as ClusterOfKit } from '../../../src/testing/cluster.js';
import type { Answer, Method, RequestOptions } from '../../../src/testing/cluster.js';
import { auditedByAccount, identityOf } from './identity.js';

export { collection } from '../../../src/testing/cluster.js';
export type { Answer, DeleteOptions, Manifest, Place, RequestOptions } from '../../../src/testing/cluster.js';

export const deployments = resourceType({ apiVersion: 'apps/v1', kind: 'Deployment' });
export const services = resourceType({ apiVersion: 'v1', kind: 'Service' });
export const configMaps = resourceType({ apiVersion: 'v1', kind: 'ConfigMap' });
export const events = resourceType({ apiVersion: 'events.k8s.io/v1', kind: 'Event' });

/** That of the testing kit, which knows operators under test by their short names, in its audit log too. */
export class Cluster extends ClusterOfKit {
  constructor(sandbox: SandboxClient) {
    super(auditedByAccount(sandbox));
  }

  override send(
    method: Method,
    path: string,
    { impersonate, ...options }: RequestOptions = {},
  ): Promise<Answer> {
    const user = impersonate === undefined ? {} : { impersonate: identityOf(impersonate) };
    return super.send(method, path, { ...options, ...user });
  }
}
