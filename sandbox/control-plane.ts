import { randomUUID } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { apiServerUrl, etcdUrl } from './arguments.js';
import { openSandbox, type SandboxHandle } from './client.js';
import { type Layout, paths } from './layout.js';
import { choosePorts } from './ports.js';
import { programNames } from './program.js';
import { findPrograms } from './programs.js';
import { logToStderr } from './progress.js';
import { RunningControlPlane } from './running-control-plane.js';
import type { Sandbox, SandboxOptions } from './sandbox.js';
import { adminUser, makeUsers } from './users.js';
import { startWatchdog } from './watchdog.js';

export type { AuditEntry, AuditObjectRef } from './audit.js';
export * from './client.js';
export type * from './sandbox.js';

/** How often to start anew when another process took a port first. */
const attempts = 5;

/**
 * Starts a control plane on free ports of 127.0.0.1 and waits until it is ready for use: the API server answers,
 * two fake nodes take pods, and the namespace `default` has its service account. Several can start side by side.
 *
 * **Guarantees**: when it fails or is interrupted, nothing of it is left.
 * **Errors**: when a program is missing and cannot be built (see `findPrograms`), ends early (with the end of its
 * log), or is not ready in time.
 */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  if (process.platform === 'win32')
    throw new Error('The sandbox runs on Linux and macOS; on Windows use WSL.');
  const { auditLog = true, apiOnly = false, log = logToStderr, assets = [] } = options;
  const { apiServerArguments = [] } = options;
  const users = makeUsers(options.users ?? []);
  const needed = apiOnly ? (['etcd', 'kube-apiserver', 'kubectl'] as const) : programNames;
  const programs = await findPrograms(needed, { log, assets });
  for (let attempt = 1; ; attempt++) {
    const id = randomUUID();
    const dir = await freshFolder(options.dataDir, id);
    const layout: Layout = { id, dir, ports: await choosePorts() };
    const watchdog = await startWatchdog();
    const controlPlane = new RunningControlPlane({
      layout,
      users,
      programs,
      apiOnly,
      auditLog,
      apiServerArguments,
      watchdog,
      log,
    });
    try {
      await controlPlane.start();
      const userNames = [adminUser, ...(options.users ?? [])];
      return toSandbox(controlPlane, makeHandle(layout, userNames, programs.kubectl));
    } catch (error) {
      await controlPlane.stop();
      if (attempt === attempts || !isPortLoss(error)) throw error;
    }
  }
}

function toSandbox(controlPlane: RunningControlPlane, handle: SandboxHandle): Sandbox {
  const stop = (): Promise<void> => controlPlane.stop();
  return {
    ...openSandbox(handle),
    handle,
    get processes() {
      return controlPlane.processes;
    },
    stopApiServer: () => controlPlane.stopApiServer(),
    startApiServer: () => controlPlane.startApiServer(),
    restartApiServer: async () => {
      await controlPlane.stopApiServer();
      await controlPlane.startApiServer();
    },
    stopEtcd: () => controlPlane.stopEtcd(),
    startEtcd: () => controlPlane.startEtcd(),
    restartControllerManager: () => controlPlane.restartControllerManager(),
    stop,
    [Symbol.asyncDispose]: stop,
    detach: async () => {
      await controlPlane.detach();
      return { handle, processes: controlPlane.processes };
    },
  };
}

function makeHandle(layout: Layout, users: readonly string[], kubectlPath: string): SandboxHandle {
  const files = paths(layout);
  return {
    dir: layout.dir,
    url: apiServerUrl(layout),
    etcdUrl: etcdUrl(layout),
    adminKubeconfig: files.kubeconfig(adminUser),
    kubeconfigs: Object.fromEntries(users.map((user) => [user, files.kubeconfig(user)])),
    kubectlPath,
    auditLogPath: files.auditLog,
  };
}

/** A folder that is empty or not there yet; it is made once the watchdog knows of it. */
async function freshFolder(dataDir: string | undefined, id: string): Promise<string> {
  if (dataDir === undefined) return join(tmpdir(), `reconstruct-sandbox-${id}`);
  const dir = resolve(dataDir);
  const content = await readdir(dir).catch(() => []);
  if (content.length > 0) throw new Error(`The folder ${dir} is not empty; a sandbox needs one of its own.`);
  return dir;
}

function isPortLoss(error: unknown): boolean {
  return error instanceof Error && error.message.includes('address already in use');
}
