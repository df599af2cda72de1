// @ts-check
import { createHash } from 'node:crypto';
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { defineCrd, defineKind } from 'cdk8s-reconstruct';

const count = /** @type {const} */ ({ type: 'integer', format: 'int32', minimum: 0 });
const text = /** @type {const} */ ({ type: 'string', minLength: 1 });
const on = /** @type {const} */ ({ type: 'boolean', default: true });
const off = /** @type {const} */ ({ type: 'boolean', default: false });

const crd = defineCrd({
  ...{ group: 'webapps.example.com', kind: 'WebApp' },
  description: 'A Deployment, and on demand a Service and an Ingress, in a namespace of its choice.',
  spec: /** @type {const} */ ({
    type: 'object',
    properties: {
      namespace: { ...text, description: 'Where the objects are. Defaults to the namespace of the WebApp.' },
      image: { ...text, default: 'nginx' },
      port: { ...count, default: 8080, minimum: 1, maximum: 65535 },
      replicas: { ...count, default: 1 },
      service: { type: 'object', default: {}, properties: { enabled: on } },
      ingress: { type: 'object', default: {}, properties: { enabled: off } },
      serviceAccount: { ...text, default: 'default' },
    },
  }),
  status: /** @type {const} */ ({ availableReplicas: count, url: text }),
  columns: [{ name: 'URL', type: 'string', jsonPath: '.status.url' }],
});

class WebApp extends Construct {
  /**
   * @param {Construct} scope
   * @param {string} id
   * @param {import('cdk8s-reconstruct').PropsOf<typeof crd>} props
   */
  constructor(scope, id, { metadata: { name: own, namespace: home = 'default' }, spec }) {
    super(scope, id);
    const { namespace = home, image, port, replicas, serviceAccount } = spec;
    // Elsewhere, no two of them may have a name in common: with a dash alone, a/b-c and a-b/c would.
    const digest = createHash('sha256').update(`${home}/${own}`).digest('hex').slice(0, 8);
    const name = namespace === home ? own : `${home}-${own}-${digest}`;
    const labels = { 'app.kubernetes.io/name': name, app: name };
    const metadata = { name, namespace };
    const resources = { requests: { memory: '64Mi', cpu: '250m' }, limits: { memory: '1Gi', cpu: '1' } };
    const container = { name: 'webapp', image, imagePullPolicy: 'Always', resources };
    new ApiObject(this, 'Deployment', {
      ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata },
      spec: {
        ...{ replicas, selector: { matchLabels: labels } },
        template: {
          metadata: { labels },
          spec: {
            serviceAccountName: serviceAccount,
            containers: [{ ...container, ports: [{ containerPort: port }] }],
          },
        },
      },
    });
    if (spec.service.enabled)
      new ApiObject(this, 'Service', {
        ...{ apiVersion: 'v1', kind: 'Service', metadata },
        spec: { selector: { app: name }, ports: [{ name: 'http', port: 80, targetPort: port }] },
      });
    if (!spec.ingress.enabled) return;
    const backend = { service: { name, port: { number: 80 } } };
    new ApiObject(this, 'Ingress', {
      ...{ apiVersion: 'networking.k8s.io/v1', kind: 'Ingress' },
      metadata: { ...metadata, annotations: { 'alb.ingress.kubernetes.io/target-type': 'ip' } },
      spec: {
        ingressClassName: 'alb',
        rules: [{ http: { paths: [{ path: '/', pathType: 'Prefix', backend }] } }],
      },
    });
  }
}

export const webApp = defineKind({
  ...{ crd, construct: WebApp },
  children: [
    { apiVersion: 'apps/v1', kind: 'Deployment', namespaces: '*' },
    { apiVersion: 'v1', kind: 'Service', namespaces: '*' },
    { apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', namespaces: '*' },
  ],
  status: ({ children }) => {
    const deployment = children.find((child) => child.kind === 'Deployment');
    const ingress = children.find((child) => child.kind === 'Ingress');
    const url = ingress?.status?.loadBalancer?.ingress?.[0]?.hostname;
    return { fields: { availableReplicas: deployment?.status?.availableReplicas ?? 0, ...(url && { url }) } };
  },
});
