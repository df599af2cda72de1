import type { SandboxClient } from '../../../sandbox/client.js';
import { INSTALL_NAME } from '../../../src/install/names.js';

/**
 * Who the API server takes an operator under test for: the ServiceAccount that an installation in a namespace of this
 * name would run as. A name that says so itself is left as it is.
 */
export function identityOf(user: string): string {
  return user.includes(':') ? user : `system:serviceaccount:${user}:${INSTALL_NAME}`;
}

/** The same sandbox; what it has on record of an operator is what its ServiceAccount has asked for. */
export function auditedByAccount(sandbox: SandboxClient): SandboxClient {
  const { dir, url, etcdUrl, adminKubeconfig, kubectlPath, auditLogPath } = sandbox;
  return {
    ...{ dir, url, etcdUrl, adminKubeconfig, kubectlPath, auditLogPath },
    kubeconfig: (user) => sandbox.kubeconfig(user),
    kubectl: (args, options) => sandbox.kubectl(args, options),
    audit: (user) => sandbox.audit(identityOf(user)),
  };
}
