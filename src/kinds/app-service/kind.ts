import { loadCrd } from '../../author/load-crd.js';
import { storedVersion } from '../../contract/crd.js';
import type { CustomResourceDefinition } from '../../contract/crd.js';
import { defineKind } from '../../author/define-kind.js';
import { misdefined, shownOption, isGroup, isKubernetesGroup } from '../../author/definition.js';
import { OWN_CONSTRUCTS } from '../../render/renderer.js';
import { handOverReplicas } from '../../author/hand-over.js';
import type { OwnedKind } from '../../contract/kind.js';
import { lazily } from '../common.js';
import { AppService } from './construct.js';
import { podsOf } from '../../author/pods.js';
import { policySchema } from './policy.js';
import type { AppServiceSpec, AppServiceStatus } from './spec.js';
import { appServiceStatus, keepDeployment, keepRoute, keepService, nodePortsOf } from './status.js';

/**
 * AppService of `kosmos.io/v1`: an image, a size and ports become a Deployment, a Service, and on demand further objects.
 */
export const appService = lazily(() =>
  defineAppService(new URL('../../../crds/appservices.kosmos.io.yaml', import.meta.url)),
);

/**
 * AppService of `app.example.com/v1`, the group of the Operator SDK's tutorial, with `v1alpha1` served beside it. Only
 * on request: two groups that offer one kind would make most commands ambiguous.
 */
export const appServiceOfExample = lazily(() =>
  defineAppService(new URL('../../../crds/optional/appservices.app.example.com.yaml', import.meta.url)),
);

OWN_CONSTRUCTS.add(AppService);

/** Names for `--kinds` of the AppServices that come with the command, by group. */
const SHIPPED: Readonly<Partial<Record<string, string>>> = {
  'kosmos.io': 'appservice',
  'app.example.com': 'appservice.app.example.com',
};

/**
 * Defines AppService under an API group of one's own: the same fields, children and status. Its CRD has neither short name
 * nor category, which stay unambiguous beside `kosmos.io`.
 *
 * @param group - a domain of one's own, such as `apps.example.com`
 * @throws OperatorError `InvalidDefinition` for what is no domain, for groups of Kubernetes itself, and for those of the built-in kinds
 */
export function appServiceIn(group: string): OwnedKind {
  const refuse = (what: string): never => {
    throw misdefined('appServiceIn', `${shownOption(group)} ${what}`);
  };
  if (!isGroup(group)) refuse("is not a domain name; write one of yours, such as 'apps.example.com'");
  if (isKubernetesGroup(group)) refuse("belongs to Kubernetes; write a domain of yours: 'apps.example.com'");
  const shipped = SHIPPED[group];
  if (shipped) refuse(`comes with the command; leave it out, and use --kinds ${shipped}`);
  const { metadata, spec, ...crd } = appService.crd;
  const { shortNames, categories, ...names } = spec.names;
  const name = `appservices.${group}`;
  return defineAppService({ ...crd, metadata: { ...metadata, name }, spec: { ...spec, group, names } });
}

/** Defines the kind under the group of a CRD: the same fields, children and status, whatever the group is. */
function defineAppService(from: URL | CustomResourceDefinition): OwnedKind {
  const crd = loadCrd(from);
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
