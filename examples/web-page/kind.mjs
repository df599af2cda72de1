// @ts-check
import { ConfigMap, Deployment, ImagePullPolicy, Volume } from 'cdk8s-plus-27';
import { Construct } from 'constructs';
import { defineCrd, defineKind } from 'cdk8s-reconstruct';

const crd = defineCrd({
  group: 'web.example.com',
  kind: 'WebPage',
  description: 'A page that a web server shows.',
  spec: {
    type: 'object',
    required: ['html'],
    properties: {
      html: { type: 'string', description: 'The page.' },
      replicas: { type: 'integer', minimum: 0, default: 1, description: 'Web servers.' },
    },
  },
});

/** A page: a ConfigMap, a Deployment and a Service, built with the classes of cdk8s-plus. */
class WebPage extends Construct {
  /**
   * @param {Construct} scope
   * @param {string} id
   * @param {import('cdk8s-reconstruct').PropsOf<typeof crd>} props
   */
  constructor(scope, id, { metadata: { name }, spec: { html, replicas } }) {
    super(scope, id);
    const page = new ConfigMap(this, 'Page', { metadata: { name }, data: { 'index.html': html } });
    const deployment = new Deployment(this, 'Server', {
      metadata: { name },
      replicas,
      securityContext: { user: 101 },
      containers: [
        {
          image: 'nginxinc/nginx-unprivileged:1.27',
          imagePullPolicy: ImagePullPolicy.IF_NOT_PRESENT,
          portNumber: 8080,
        },
      ],
    });
    const [server] = deployment.containers;
    const map = ConfigMap.fromConfigMapName(this, 'PageMap', page.name);
    server?.mount('/usr/share/nginx/html', Volume.fromConfigMap(this, 'PageVolume', map, { name: 'page' }));
    server?.mount('/tmp', Volume.fromEmptyDir(this, 'Temporary', 'temporary'));
    deployment.exposeViaService({ name, ports: [{ port: 80, targetPort: 8080 }] });
  }
}

export const webPage = defineKind({
  crd,
  construct: WebPage,
  children: [
    { apiVersion: 'v1', kind: 'ConfigMap' },
    { apiVersion: 'apps/v1', kind: 'Deployment' },
    { apiVersion: 'v1', kind: 'Service' },
  ],
});
