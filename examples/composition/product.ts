import { ApiObject } from 'cdk8s';
import { defineCrd, defineKind, type AnyObject, type PropsOf } from 'cdk8s-reconstruct';
import { Construct } from 'constructs';

const crd = defineCrd({
  group: 'apps.example.com',
  kind: 'Product',
  description: 'Apps that belong together, and what all of them need.',
  rules: [
    {
      rule: "self.metadata.name.matches('^[a-z][a-z0-9]{0,19}$')",
      message: 'the names of its Apps begin with it; use lower-case letters and digits, at most 20',
    },
  ],
  spec: {
    type: 'object',
    required: ['apps'],
    properties: {
      dashboards: { type: 'boolean', default: false, description: 'Whether it has dashboards.' },
      apps: {
        type: 'array',
        description: 'The Apps.',
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['name'],
        items: {
          type: 'object',
          required: ['name', 'image'],
          properties: {
            name: {
              type: 'string',
              pattern: '^[a-z][-a-z0-9]{0,20}[a-z0-9]$',
              description: 'End of its name.',
            },
            image: { type: 'string', minLength: 1, description: 'Its image.' },
          },
        },
      },
    },
  },
});

/** Constants, since Argo CD applies what is in the repository with the rights of the project. */
const source = { repoURL: 'https://git.example.com/dashboards.git', targetRevision: 'main' };
const project = 'dashboards';

/** A message broker from a Helm chart, dashboards from Git, and the Apps once both are ready. */
class Product extends Construct {
  constructor(scope: Construct, id: string, { metadata, spec }: PropsOf<typeof crd>) {
    super(scope, id);
    const { name, namespace = 'default' } = metadata;

    const broker = new ApiObject(this, 'Broker', {
      apiVersion: 'helm.toolkit.fluxcd.io/v2',
      kind: 'HelmRelease',
      metadata: { name },
      spec: { interval: '10m', chartRef: { kind: 'OCIRepository', namespace: 'flux-system', name: 'nats' } },
    });
    const needed = [broker];
    if (spec.dashboards)
      needed.push(
        new ApiObject(this, 'Dashboards', {
          apiVersion: 'argoproj.io/v1alpha1',
          kind: 'Application',
          // Without it, Argo CD leaves what it has applied.
          metadata: { name, finalizers: ['resources-finalizer.argocd.argoproj.io'] },
          spec: {
            project,
            source: { ...source, path: `${namespace}/${name}` },
            destination: { server: 'https://kubernetes.default.svc', namespace },
            syncPolicy: { automated: {} },
          },
        }),
      );
    for (const { name: end, image } of spec.apps)
      new ApiObject(this, end, {
        apiVersion: 'apps.example.com/v1',
        kind: 'App',
        metadata: { name: `${name}-${end}` },
        spec: { image },
      }).addDependency(...needed);
  }
}

interface ApplicationStatus {
  readonly health?: { readonly status?: string; readonly message?: string };
  readonly sync?: { readonly status?: string };
}

/** Argo CD says in words of its own how an Application is; this is the condition that others have. */
function readyCondition(object: AnyObject): { readonly status?: object } {
  if (object.status === undefined) return {};
  const { health = {}, sync = {} } = object.status as ApplicationStatus;
  const { status: reason = 'Unknown', message = `it is ${reason} and ${sync.status ?? 'not compared'}` } =
    health;
  const isReady = reason === 'Healthy' && sync.status === 'Synced';
  const isBroken = reason === 'Degraded' || reason === 'Missing';
  const status = isReady ? 'True' : isBroken ? 'False' : 'Unknown';
  return { status: { conditions: [{ type: 'Ready', status, reason, message }] } };
}

export const product = defineKind({
  crd,
  construct: Product,
  children: [
    { apiVersion: 'helm.toolkit.fluxcd.io/v2', kind: 'HelmRelease' },
    { apiVersion: 'argoproj.io/v1alpha1', kind: 'Application', optional: true, keep: readyCondition },
    { apiVersion: 'apps.example.com/v1', kind: 'App' },
  ],
});
