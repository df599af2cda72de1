import { loadCrd, storedVersion } from '../../contract/crd.js';
import { defineKind } from '../../contract/define-kind.js';
import { ENDING } from '../../contract/deterministic.js';
import { handOverReplicas } from '../../contract/hand-over.js';
import type { OwnedKind } from '../../contract/kind.js';
import { AppService } from './construct.js';
import { podsOf } from '../../contract/pods.js';
import { policySchema } from './policy.js';
import type { AppServiceSpec, AppServiceStatus } from './spec.js';
import { appServiceStatus, keepDeployment, keepRoute, keepService, nodePortsOf } from './status.js';

/**
 * AppService of `kosmos.io/v1`: an image, a size and ports become a Deployment, a Service, and on demand further objects.
 */
export const appService = defineAppService(
  new URL('../../../crds/appservices.kosmos.io.yaml', import.meta.url),
);

ENDING.add(AppService);

/** Defines the kind under the group of a CRD: the same fields, children and status, whatever the group is. */
export function defineAppService(file: URL): OwnedKind {
  const crd = loadCrd(file);
  const { properties = {} } = storedVersion(crd).schema.openAPIV3Schema.properties?.spec ?? {};
  return defineKind<AppServiceSpec, AppServiceStatus>({
    crd,
    construct: AppService,
    children: [
      { apiVersion: 'apps/v1', kind: 'Deployment', keep: keepDeployment },
      { apiVersion: 'v1', kind: 'Service', keep: keepService, claims: nodePortsOf },
      { apiVersion: 'autoscaling/v2', kind: 'HorizontalPodAutoscaler' },
      { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget' },
      { apiVersion: 'gateway.networking.k8s.io/v1', kind: 'HTTPRoute', optional: true, keep: keepRoute },
    ],
    related: [podsOf({ apiVersion: `${crd.spec.group}/v1`, kind: 'AppService' })],
    handOver: ({ cr, children }) =>
      cr.spec.autoscaling ? handOverReplicas({ cr, children, start: cr.spec.size }) : [],
    policySchema: policySchema(Object.keys(properties)),
    status: appServiceStatus,
  });
}
