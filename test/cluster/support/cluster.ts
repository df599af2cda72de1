import { resourceType } from '../../../src/contract/resource.js';

export * from '../../../src/testing/cluster.js';

export const deployments = resourceType({ apiVersion: 'apps/v1', kind: 'Deployment' });
export const services = resourceType({ apiVersion: 'v1', kind: 'Service' });
export const configMaps = resourceType({ apiVersion: 'v1', kind: 'ConfigMap' });
export const events = resourceType({ apiVersion: 'events.k8s.io/v1', kind: 'Event' });
