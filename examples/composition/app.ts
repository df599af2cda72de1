import { ApiObject } from 'cdk8s';
import { selectorLabels } from 'cdk8s-reconstruct';
import { Construct } from 'constructs';
import { crd, type AppProps } from './crd.ts';

/** A web application: keys from the vault, a PostgreSQL, and Pods as soon as both are ready. */
export class App extends Construct {
  constructor(scope: Construct, id: string, { metadata: { name, namespace = 'default' }, spec }: AppProps) {
    super(scope, id);
    const child = (apiVersion: string, kind: string, spec: object) =>
      new ApiObject(this, kind, { apiVersion, kind, metadata: { name }, spec });

    const keys = child('external-secrets.io/v1', 'ExternalSecret', {
      secretStoreRef: { kind: 'ClusterSecretStore', name: 'vault' },
      target: { name: `${name}-keys` },
      dataFrom: [{ extract: { key: `${namespace}/${name}` } }],
    });
    const storage = { size: spec.storage };
    const database = child('postgresql.cnpg.io/v1', 'Cluster', { instances: 3, storage });
    const web = child('apps/v1', 'Deployment', deploymentOf(name, spec));
    web.addDependency(keys, database);
  }
}

function deploymentOf(name: string, { image, replicas }: AppProps['spec']): object {
  const labels = selectorLabels(crd, name);
  const url = { secretKeyRef: { name: `${name}-app`, key: 'uri' } }; // CloudNativePG makes it
  const container = {
    name: 'web',
    image,
    imagePullPolicy: 'IfNotPresent',
    env: [{ name: 'DATABASE_URL', valueFrom: url }],
    envFrom: [{ secretRef: { name: `${name}-keys` } }],
  };
  const template = { metadata: { labels }, spec: { containers: [container] } };
  return { replicas, selector: { matchLabels: labels }, template };
}
