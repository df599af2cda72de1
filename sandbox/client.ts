import { spawn } from 'node:child_process';
import { AuditLog } from './audit.js';
import type { AuditEntry } from './audit.js';
import { adminUser } from './users.js';

/** All that is needed to use a running sandbox from another process; plain data. */
export interface SandboxHandle {
  /** The sandbox's own folder. */
  readonly dir: string;
  /** The API server's URL. */
  readonly url: string;
  /** The URL of etcd, which serves its HTTP gateway there too. */
  readonly etcdUrl: string;
  /** The path of the admin's kubeconfig. */
  readonly adminKubeconfig: string;
  /** The paths of the kubeconfigs by user, `admin` included. */
  readonly kubeconfigs: Readonly<Record<string, string>>;
  readonly kubectlPath: string;
  readonly auditLogPath: string;
}

/** How kubectl is run. */
export interface KubectlOptions {
  /** @default - nothing */
  readonly stdin?: string;
  /**
   * The path of a kubeconfig.
   *
   * @default - the admin's
   */
  readonly kubeconfig?: string;
  /**
   * Give back the result of a failed command instead of throwing.
   *
   * @default false
   */
  readonly allowFailure?: boolean;
}

/** What kubectl has printed, and how it ended. */
export interface KubectlResult {
  readonly stdout: string;
  readonly stderr: string;
  /** The exit code; 0 means success. */
  readonly code: number;
}

/** A running sandbox, from the side of its users. */
export interface SandboxClient extends Omit<SandboxHandle, 'kubeconfigs'> {
  /** The path of a user's kubeconfig. **Errors**: for a user not declared when the sandbox was started. */
  kubeconfig(user: string): string;
  /** Runs kubectl. **Errors**: when it fails, with what it printed, unless `allowFailure` is set. */
  kubectl(args: readonly string[], options?: KubectlOptions): Promise<KubectlResult>;
  /**
   * What the audit log holds of a user's requests, oldest first, those included whose effect is seen already; a
   * watch twice, when it begins and when it ends, under one `auditID`.
   *
   * **Caveats**: requests of the control plane itself (its programs and controllers) are not logged.
   */
  audit(user: string): Promise<AuditEntry[]>;
}

/** Opens a sandbox that another process has started. */
export function openSandbox(handle: SandboxHandle): SandboxClient {
  const { kubeconfigs, ...rest } = handle;
  const log = new AuditLog(handle.auditLogPath);
  return {
    ...rest,
    kubeconfig: (user) => kubeconfigOf(kubeconfigs, user),
    kubectl: (args, options) => runKubectl(handle, args, options),
    audit: (user) => log.entries(user),
  };
}

function kubeconfigOf(kubeconfigs: Readonly<Record<string, string>>, user: string): string {
  const path = Object.hasOwn(kubeconfigs, user) ? kubeconfigs[user] : undefined;
  if (path !== undefined) return path;
  const known = Object.keys(kubeconfigs).join(', ');
  throw new Error(
    `The sandbox has no user "${user}"; it has ${known}. Name users in startSandbox({ users }).`,
  );
}

function runKubectl(
  handle: SandboxHandle,
  args: readonly string[],
  options: KubectlOptions = {},
): Promise<KubectlResult> {
  const env = {
    ...process.env,
    KUBECONFIG: options.kubeconfig ?? handle.kubeconfigs[adminUser],
    KUBECACHEDIR: `${handle.dir}/kubectl-cache`, // Not the user's ~/.kube/cache.
    KUBERC: 'off',
  };
  return new Promise((resolve, reject) => {
    const child = spawn(handle.kubectlPath, args, { env, stdio: ['pipe', 'pipe', 'pipe'] });
    const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)];
    child.once('error', reject);
    child.once('close', (code, signal) => {
      const result = { stdout: stdout(), stderr: stderr(), code: code ?? 1 };
      if (result.code === 0 || options.allowFailure === true) resolve(result);
      else {
        const how = signal ?? `exit code ${result.code}`;
        reject(new Error(`kubectl ${args.join(' ')} failed (${how}):\n${result.stderr}${result.stdout}`));
      }
    });
    child.stdin.on('error', () => undefined); // kubectl ended without reading; its exit code tells.
    child.stdin.end(options.stdin ?? '');
  });
}

function collect(stream: NodeJS.ReadableStream): () => string {
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  return () => Buffer.concat(chunks).toString();
}
