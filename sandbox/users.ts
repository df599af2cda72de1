import { randomBytes } from 'node:crypto';
import { writeYaml } from '#values/yaml.js';

/** The people's user, in system:masters. */
export const adminUser = 'admin';

/**
 * The users of the sandbox itself, in system:masters too, but distinguished from people by name: the programs of the
 * control plane, and `sandbox:starter`, which waits for readiness and makes the nodes.
 */
export const ownUsers = {
  'kube-controller-manager': 'sandbox:kube-controller-manager',
  'kube-scheduler': 'sandbox:kube-scheduler',
  kwok: 'sandbox:kwok',
  starter: 'sandbox:starter',
} as const;

/** A user who authenticates by a bearer token. */
export interface User {
  readonly name: string;
  readonly token: string;
  /** Beside system:authenticated, which everyone is in. */
  readonly groups: readonly string[];
}

/**
 * The users of a sandbox: {@link adminUser}, the sandbox's own, and each of `names` as a plain user without rights.
 *
 * **Errors**: on a name that is taken or is not made of lower-case letters, digits, `-` and `.`.
 */
export function makeUsers(names: readonly string[]): ReadonlyMap<string, User> {
  const masters = [adminUser, ...Object.values(ownUsers)];
  for (const [index, name] of names.entries()) {
    if (!/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/.test(name)) {
      throw new Error(`The user name "${name}" must consist of lower-case letters, digits, "-" and ".".`);
    }
    if (masters.includes(name) || names.indexOf(name) !== index) {
      throw new Error(`The user name "${name}" is taken; give each user a name of its own.`);
    }
  }
  const users = [
    ...masters.map((name) => ({ name, token: makeToken(), groups: ['system:masters'] })),
    ...names.map((name) => ({ name, token: makeToken(), groups: [] })),
  ];
  return new Map(users.map((user) => [user.name, user]));
}

/** The API server's token file: `token,user,uid,"group1,group2"`. */
export function tokenFile(users: Iterable<User>): string {
  return [...users]
    .map((user) => `${user.token},${user.name},${user.name},"${user.groups.join(',')}"\n`)
    .join('');
}

function makeToken(): string {
  return randomBytes(24).toString('hex');
}

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
