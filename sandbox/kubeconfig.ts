import { writeYaml } from '#contract/yaml.js';
import type { User } from './users.js';

/** The cluster a kubeconfig leads to. */
export interface KubeconfigCluster {
  /** The API server's URL. */
  readonly url: string;
  /** The certificate authority, PEM. */
  readonly ca: string;
}

/** A kubeconfig with one context, `sandbox`, for one user. */
export function kubeconfigFor(cluster: KubeconfigCluster, user: Pick<User, 'name' | 'token'>): string {
  return writeYaml({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: 'sandbox',
        cluster: {
          server: cluster.url,
          'certificate-authority-data': Buffer.from(cluster.ca).toString('base64'),
        },
      },
    ],
    users: [{ name: user.name, user: { token: user.token } }],
    contexts: [{ name: 'sandbox', context: { cluster: 'sandbox', user: user.name, namespace: 'default' } }],
    'current-context': 'sandbox',
  });
}
