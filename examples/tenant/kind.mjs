// @ts-check
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { checksumAnnotations, defineCrd, defineKind, selectorLabels } from 'cdk8s-reconstruct';

const crd = defineCrd({
  group: 'tenants.example.com',
  kind: 'Tenant',
  description: 'An application of a team, with its settings, its backup and its network.',
  spec: /** @type {const} */ ({
    type: 'object',
    required: ['image', 'database'],
    properties: {
      image: { type: 'string', minLength: 1, description: 'Image of the application.' },
      database: { type: 'string', description: 'Secret with the URL of its database, in this namespace.' },
      settings: { type: 'object', additionalProperties: { type: 'string' }, description: 'Its files.' },
      sidecars: {
        type: 'array',
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['name'],
        description: 'Containers beside it.',
        items: {
          type: 'object',
          required: ['name', 'image'],
          properties: { name: { type: 'string' }, image: { type: 'string' } },
        },
      },
      backup: { type: 'string', default: '0 3 * * *', description: 'When it is backed up, as cron has it.' },
      admitFrom: { type: 'string', description: 'Namespace that may reach it. Default: its own.' },
    },
  }),
});

const references = /** @satisfies {import('cdk8s-reconstruct').References<typeof crd>} */ (
  /** @type {const} */ ({
    database: { apiVersion: 'v1', kind: 'Secret', name: (cr) => cr.spec.database },
  })
);
/** @typedef {import('cdk8s-reconstruct').PropsOf<typeof crd, { references: typeof references }>} Props */

/** A tenant: everything that its application needs in its namespace. */
class Tenant extends Construct {
  /**
   * @param {Construct} scope
   * @param {string} id
   * @param {Props} props
   */
  constructor(scope, id, { metadata: { name }, spec, references: { database } }) {
    super(scope, id);
    const metadata = { name };
    const labels = selectorLabels(crd, name);
    const { image, settings = {}, sidecars = [], backup, admitFrom } = spec;
    const imagePullPolicy = 'IfNotPresent';
    const envFrom = [{ secretRef: { name: spec.database } }];
    const volumeMounts = [{ name: 'settings', mountPath: '/etc/tenant' }];
    const pod = {
      serviceAccountName: name,
      volumes: [{ name: 'settings', configMap: { name } }],
    };

    new ApiObject(this, 'Settings', { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: settings });
    new ApiObject(this, 'Account', { apiVersion: 'v1', kind: 'ServiceAccount', metadata });
    new ApiObject(this, 'Role', {
      ...{ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role', metadata },
      rules: [{ apiGroups: [''], resources: ['configmaps'], resourceNames: [name], verbs: ['get'] }],
    });
    new ApiObject(this, 'Binding', {
      ...{ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'RoleBinding', metadata },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name },
      subjects: [{ kind: 'ServiceAccount', name }],
    });
    new ApiObject(this, 'Application', {
      ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata },
      spec: {
        selector: { matchLabels: labels },
        template: {
          // New Pods when the Secret changes.
          metadata: { labels, annotations: checksumAnnotations({ database }) },
          spec: {
            ...pod,
            containers: [
              { name: 'application', image, imagePullPolicy, envFrom, volumeMounts },
              ...sidecars.map((sidecar) => ({ ...sidecar, imagePullPolicy })),
            ],
          },
        },
      },
    });
    const job = { ...pod, restartPolicy: 'OnFailure' };
    const backingUp = { name: 'backup', image, imagePullPolicy, args: ['backup'], envFrom, volumeMounts };
    new ApiObject(this, 'Backup', {
      ...{ apiVersion: 'batch/v1', kind: 'CronJob', metadata },
      spec: {
        schedule: backup,
        jobTemplate: { spec: { template: { spec: { ...job, containers: [backingUp] } } } },
      },
    });
    const namespaceSelector = { matchLabels: { 'kubernetes.io/metadata.name': admitFrom } };
    new ApiObject(this, 'Network', {
      ...{ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata },
      spec: {
        podSelector: { matchLabels: labels },
        policyTypes: ['Ingress'],
        ingress: [{ from: [admitFrom === undefined ? { podSelector: {} } : { namespaceSelector }] }],
      },
    });
  }
}

export const tenant = defineKind({
  ...{ crd, references, construct: Tenant },
  children: [
    { apiVersion: 'v1', kind: 'ConfigMap' },
    { apiVersion: 'v1', kind: 'ServiceAccount' },
    { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role' },
    { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'RoleBinding' },
    { apiVersion: 'apps/v1', kind: 'Deployment' },
    { apiVersion: 'batch/v1', kind: 'CronJob' },
    { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy' },
  ],
});
