import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { openSandbox, type SandboxClient, type SandboxHandle } from './client.js';
import {
  apiServerArguments,
  apiServerUrl,
  controllerManagerArguments,
  etcdArguments,
  etcdUrl,
  kwokArguments,
  type Layout,
  paths,
  schedulerArguments,
  writeLayout,
} from './layout.js';
import { addNodes, addVolumes, type ApiAccess, callApi } from './nodes.js';
import { choosePorts } from './ports.js';
import { ManagedProcess, type ProcessIdentity } from './process.js';
import { type Program, programNames } from './go.js';
import { formatDuration, type Log, logToStderr, showProgress } from './progress.js';
import { findPrograms } from './programs.js';
import { adminUser, kubeconfigFor, makeUsers, ownUsers, type User } from './users.js';
import { waitFor } from './wait.js';
import { startWatchdog, type Watchdog } from './watchdog.js';

export type { AuditEntry, AuditObjectRef } from './audit.js';
export * from './client.js';

/** Options of a sandbox. */
export interface SandboxOptions {
  /**
   * Users to make beside `admin`, without any rights until a role is bound to them by name.
   *
   * @default - none
   */
  readonly users?: readonly string[];
  /**
   * Whether only etcd and the API server start: faster, but nothing schedules, collects garbage, empties namespaces or
   * makes service accounts.
   *
   * @default false
   */
  readonly apiOnly?: boolean;
  /**
   * Whether the audit log is written.
   *
   * @default true
   */
  readonly auditLog?: boolean;
  /**
   * Further arguments of the API server.
   *
   * @default - none
   */
  readonly apiServerArguments?: readonly string[];
  /**
   * The sandbox's folder; it must be empty or not exist, and is removed when the sandbox ends.
   *
   * @default - a new temporary folder
   */
  readonly dataDir?: string;
  /**
   * Takes news: a build's progress, a program that ended by itself.
   *
   * @default - lines on standard error
   */
  readonly log?: Log;
  /**
   * Folders with control-plane programs, looked into before all other places.
   *
   * @default - none
   */
  readonly assets?: readonly string[];
}

/** Record of a sandbox that outlives its starter. */
export interface SandboxRecord {
  readonly handle: SandboxHandle;
  /** The processes by program. */
  readonly processes: Readonly<Record<string, ProcessIdentity>>;
}

/**
 * A control plane of its own on 127.0.0.1.
 *
 * **Guarantees**: it ends with the process that started it, however that ends, unless {@link detach} was called.
 */
export interface Sandbox extends SandboxClient, AsyncDisposable {
  /** Plain data to open the sandbox with in another process, by `openSandbox`. */
  readonly handle: SandboxHandle;
  /** The processes that run now, by program. */
  readonly processes: Readonly<Record<string, ProcessIdentity>>;
  /** Ends the API server and nothing else; its port stays free for it. */
  stopApiServer(): Promise<void>;
  /** Starts the API server again, on the same port and data, and waits until it is ready. */
  startApiServer(): Promise<void>;
  restartApiServer(): Promise<void>;
  /** Ends etcd, once the API server was stopped; its folder may be replaced then. */
  stopEtcd(): Promise<void>;
  /** Starts etcd again, on the same ports, and waits until it answers. */
  startEtcd(): Promise<void>;
  /**
   * Ends the controller manager and starts it again. Its garbage collector looks for new kinds every 30 s only, and
   * when it starts: after this, it knows those of the CRDs installed so far.
   */
  restartControllerManager(): Promise<void>;
  /** Ends all processes and removes the folder. Can be called more than once. */
  stop(): Promise<void>;
  /** Lets the sandbox run on when this process ends. Nothing but the returned record knows of it then. */
  detach(): Promise<SandboxRecord>;
}

/** Long enough for a loaded machine with two cores. */
const startTimeout = 120_000;

interface ControlPlaneProps extends Required<Pick<SandboxOptions, 'apiOnly' | 'auditLog' | 'log'>> {
  readonly layout: Layout;
  readonly users: ReadonlyMap<string, User>;
  /** Paths; those beyond etcd and the API server are not needed when `apiOnly` is set. */
  readonly programs: Readonly<Partial<Record<Program, string>>>;
  /** Beside the sandbox's own. */
  readonly apiServerArguments: readonly string[];
  readonly watchdog: Watchdog;
}

/** The processes of one control plane and the order they start and stop in; its methods are those of {@link Sandbox}. */
class ControlPlane {
  readonly handle: SandboxHandle;
  readonly #props: ControlPlaneProps;
  readonly #running = new Map<Program, ManagedProcess>();
  #started = false;
  #stopped: Promise<void> | undefined;

  constructor(props: ControlPlaneProps, handle: SandboxHandle) {
    this.#props = props;
    this.handle = handle;
  }

  get processes(): Readonly<Record<string, ProcessIdentity>> {
    return Object.fromEntries([...this.#running].map(([name, { identity }]) => [name, identity]));
  }

  /** Starts everything and waits until it is ready for use. After a failure, call {@link stop}. */
  async start(): Promise<void> {
    const { layout, users, watchdog, apiOnly } = this.#props;
    watchdog.watchFolder(layout.dir);
    await writeLayout(layout, users.values());
    await this.startEtcd();
    await this.startApiServer();
    const { url, ca } = this.#access();
    const write = (user: User): Promise<void> =>
      writeFile(paths(layout).kubeconfig(user.name), kubeconfigFor({ url, ca }, user), { mode: 0o600 });
    await Promise.all([...users.values()].map(write));
    await this.#waitForObject('the namespace default', '/api/v1/namespaces/default');
    if (!apiOnly) await this.#startControllers();
    this.#started = true;
  }

  async startEtcd(): Promise<void> {
    const { layout } = this.#props;
    const etcd = await this.#run('etcd', etcdArguments(layout));
    // By the name of its member: on a lost port, another sandbox's etcd would answer.
    const answers = async (): Promise<true | undefined> => {
      const signal = AbortSignal.timeout(5_000);
      const request = { method: 'POST', body: '{}', signal };
      const answer = await fetch(`${etcdUrl(layout)}/v3/cluster/member/list`, request);
      return (await answer.text()).includes(`"${layout.id}"`) || undefined;
    };
    await waitFor('etcd to answer', answers, { timeoutMilliseconds: startTimeout, processes: [etcd] });
  }

  async stopEtcd(): Promise<void> {
    await this.#end('etcd');
  }

  async startApiServer(): Promise<void> {
    if (this.#running.has('kube-apiserver')) return;
    const { layout, auditLog, apiServerArguments: further } = this.#props;
    await this.#run('kube-apiserver', [...apiServerArguments(layout, auditLog), ...further]);
    await this.#waitForObject('the API server to be ready', '/readyz');
  }

  async stopApiServer(): Promise<void> {
    await this.#end('kube-apiserver');
  }

  async restartApiServer(): Promise<void> {
    await this.stopApiServer();
    await this.startApiServer();
  }

  async restartControllerManager(): Promise<void> {
    await this.#end('kube-controller-manager');
    await this.#run('kube-controller-manager', controllerManagerArguments(this.#props.layout));
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async detach(): Promise<SandboxRecord> {
    await this.#props.watchdog.release();
    return { handle: this.handle, processes: this.processes };
  }

  async #stop(): Promise<void> {
    const names = [...this.#running.keys()];
    await Promise.all(names.filter((name) => name !== 'etcd').map((name) => this.#end(name)));
    await this.#end('etcd'); // Last: the API server waits for it while it shuts down.
    await rm(this.#props.layout.dir, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
    await this.#props.watchdog.release();
  }

  async #startControllers(): Promise<void> {
    const { layout } = this.#props;
    await Promise.all([
      this.#run('kube-controller-manager', controllerManagerArguments(layout)),
      this.#run('kube-scheduler', schedulerArguments(layout)),
      this.#run('kwok', kwokArguments(layout)),
    ]);
    await Promise.all([addNodes(this.#access(), [...this.#running.values()]), addVolumes(this.#access())]);
    const account = '/api/v1/namespaces/default/serviceaccounts/default';
    await this.#waitForObject('the service account of the namespace default', account);
  }

  async #run(name: Program, args: readonly string[]): Promise<ManagedProcess> {
    const { layout, programs, watchdog, log } = this.#props;
    const program = programs[name];
    if (program === undefined) throw new Error(`The path of ${name} is not given.`);
    const logFile = paths(layout).log(name);
    const started = await ManagedProcess.start({ name, program, args, dir: layout.dir, logFile, watchdog });
    this.#running.set(name, started);
    void started.ended.then(() => {
      if (this.#running.get(name) === started) this.#running.delete(name);
      if (this.#started && started.failure !== undefined) log(started.failure.message);
    });
    return started;
  }

  async #end(name: Program): Promise<void> {
    await this.#running.get(name)?.stop();
    this.#running.delete(name);
  }

  async #waitForObject(what: string, path: string): Promise<void> {
    const found = async (): Promise<true> => {
      const { status, body } = await callApi(this.#access(), 'GET', path);
      if (status !== 200) throw new Error(`GET ${path}: HTTP ${status}: ${body}`);
      return true;
    };
    const processes = [...this.#running.values()];
    await waitFor(what, found, { timeoutMilliseconds: startTimeout, processes });
  }

  /** @throws before the API server has made its certificate */
  #access(): ApiAccess {
    const { layout, users } = this.#props;
    const ca = readFileSync(paths(layout).ca, 'utf8');
    return { url: apiServerUrl(layout), ca, token: users.get(ownUsers.starter)?.token ?? '' };
  }
}

/** Number of starts, in case another process takes a port first. */
const attempts = 5;

/**
 * Starts a control plane on free ports of 127.0.0.1 and waits until it is ready for use: the API server answers,
 * two fake nodes take pods, and the namespace `default` has its service account. Several can start side by side.
 *
 * **Guarantees**: when it fails or is interrupted, nothing of it is left.
 * **Errors**: when a program is missing and can be neither downloaded nor built (see `findPrograms`), ends early (with the end of its
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
    const handle = makeHandle(layout, [adminUser, ...(options.users ?? [])], programs.kubectl);
    const props = { layout, users, programs, apiOnly, auditLog, apiServerArguments, watchdog, log };
    const controlPlane = new ControlPlane(props, handle);
    const started = Date.now();
    const status = (): string => `  starting the control plane: ${formatDuration(Date.now() - started)}`;
    const progress = showProgress(status, log);
    try {
      await controlPlane.start();
      return Object.assign(controlPlane, openSandbox(handle));
    } catch (error) {
      await controlPlane.stop();
      const isPortLoss = error instanceof Error && error.message.includes('address already in use');
      if (attempt === attempts || !isPortLoss) throw error;
    } finally {
      progress.stop();
    }
  }
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

/** Returns a folder that is empty or not there yet; it is made once the watchdog knows of it. */
async function freshFolder(dataDir: string | undefined, id: string): Promise<string> {
  if (dataDir === undefined) return join(tmpdir(), `reconstruct-sandbox-${id}`);
  const dir = resolve(dataDir);
  const content = await readdir(dir).catch(() => []);
  if (content.length > 0) throw new Error(`The folder ${dir} is not empty; a sandbox needs one of its own.`);
  return dir;
}
