import type { SandboxClient } from '../../../sandbox/client.js';
import { identityOf } from '../../../src/testing/account.js';

export { identityOf };

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
