import { spawn, type ChildProcessByStdio } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { programEnded } from '#telemetry/program.js';
import { AuditLog } from './audit.js';
import type { AuditEntry } from './audit.js';
import { logToStderr } from './progress.js';
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

/** Options of a call of kubectl. */
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
   * Whether the result of a failed command is returned, instead of an error thrown.
   *
   * @default false
   */
  readonly allowFailure?: boolean;
}

/** Output of kubectl, and its end. */
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
  /**
   * Runs kubectl. **Errors**: when it fails, with what it printed, unless `allowFailure` is set; when it prints nothing for
   * five minutes.
   */
  kubectl(args: readonly string[], options?: KubectlOptions): Promise<KubectlResult>;
  /**
   * Entries of the audit log for a user's requests, oldest first, those included whose effect is seen already; a
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

async function runKubectl(
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
  const what = `kubectl ${args.join(' ')}`;
  const child = spawn(handle.kubectlPath, args, { env, stdio: ['pipe', 'pipe', 'pipe'] });
  child.stdin.on('error', () => undefined); // kubectl ended without reading, as its exit code shows.
  child.stdin.end(options.stdin ?? '');
  const remedy = 'see whether the API server answers, and give --request-timeout or --timeout';
  const { signal, ...result } = await outputOf(child, what, remedy);
  if (result.code === 0 || options.allowFailure === true) return result;
  const how = signal ?? `exit code ${result.code}`;
  throw new Error(`${what} failed (${how}):\n${result.stderr}${result.stdout}`);
}

/** Waits for the end of a program. @throws when it can't be started, and when it prints nothing for five minutes */
export async function outputOf(
  child: ChildProcessByStdio<Writable | null, Readable, Readable>,
  what: string,
  remedy: string,
): Promise<KubectlResult & { readonly signal: NodeJS.Signals | null }> {
  const output = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output.stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output.stderr += text));
  const { code, signal } = await programEnded(child, { what, remedy, say: logToStderr });
  return { ...output, code: code ?? 1, signal };
}
