import { readFileSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { type ApiAccess, callApi } from './api.js';
import {
  apiServerArguments,
  apiServerUrl,
  controllerManagerArguments,
  etcdArguments,
  etcdUrl,
  kwokArguments,
  schedulerArguments,
} from './arguments.js';
import { kubeconfigFor } from './kubeconfig.js';
import { type Layout, paths, writeLayout } from './layout.js';
import { addNodes } from './nodes.js';
import { ManagedProcess } from './process.js';
import type { ProcessIdentity } from './process-identity.js';
import type { Program } from './program.js';
import type { Log } from './progress.js';
import { ownUsers, type User } from './users.js';
import { addVolumes } from './volumes.js';
import { waitFor } from './wait.js';
import type { Watchdog } from './watchdog.js';

/** What a control plane is started with. */
export interface ControlPlaneProps {
  readonly layout: Layout;
  readonly users: ReadonlyMap<string, User>;
  /** The paths of the programs; those beyond etcd and the API server are not needed when `apiOnly` is set. */
  readonly programs: Readonly<Partial<Record<Program, string>>>;
  readonly apiOnly: boolean;
  readonly auditLog: boolean;
  /** Beside the sandbox's own. */
  readonly apiServerArguments: readonly string[];
  readonly watchdog: Watchdog;
  readonly log: Log;
}

/** Long enough for a loaded machine with two cores. */
const startTimeout = 120_000;

/** The processes of one control plane and the order they start and stop in. */
export class RunningControlPlane {
  readonly #props: ControlPlaneProps;
  readonly #running = new Map<Program, ManagedProcess>();
  #started = false;
  #stopped: Promise<void> | undefined;

  constructor(props: ControlPlaneProps) {
    this.#props = props;
  }

  /** The processes that run, by program. */
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
    await this.#writeKubeconfigs();
    await this.#waitForObject('the namespace default', '/api/v1/namespaces/default');
    if (!apiOnly) await this.#startControllers();
    this.#started = true;
  }

  /** Starts etcd and waits until it answers. */
  async startEtcd(): Promise<void> {
    const { layout } = this.#props;
    const etcd = await this.#run('etcd', etcdArguments(layout));
    await waitFor('etcd to answer', () => hasMember(etcdUrl(layout), layout.id), {
      timeoutMilliseconds: startTimeout,
      processes: [etcd],
    });
  }

  /** Ends etcd, which the API server must not need any more. */
  async stopEtcd(): Promise<void> {
    await this.#end('etcd');
  }

  /** Starts the API server and waits until it is ready. Does nothing if it runs. */
  async startApiServer(): Promise<void> {
    if (this.#running.has('kube-apiserver')) return;
    const { layout, auditLog, apiServerArguments: further } = this.#props;
    await this.#run('kube-apiserver', [...apiServerArguments(layout, auditLog), ...further]);
    await this.#waitForObject('the API server to be ready', '/readyz');
  }

  /** Ends the API server. Does nothing if it does not run. */
  async stopApiServer(): Promise<void> {
    await this.#end('kube-apiserver');
  }

  /** Ends the controller manager and starts it again. */
  async restartControllerManager(): Promise<void> {
    await this.#end('kube-controller-manager');
    await this.#run('kube-controller-manager', controllerManagerArguments(this.#props.layout));
  }

  /** Ends everything, removes the folder and lets the watchdog go. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  /** Lets the processes run on when this process ends. */
  async detach(): Promise<void> {
    await this.#props.watchdog.release();
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

  async #writeKubeconfigs(): Promise<void> {
    const { layout, users } = this.#props;
    const { url, ca } = this.#access();
    const write = (user: User): Promise<void> =>
      writeFile(paths(layout).kubeconfig(user.name), kubeconfigFor({ url, ca }, user), { mode: 0o600 });
    await Promise.all([...users.values()].map(write));
  }

  async #waitForObject(what: string, path: string): Promise<void> {
    const ok = async (): Promise<true | undefined> => {
      const { status, body } = await callApi(this.#access(), 'GET', path);
      if (status !== 200) throw new Error(`GET ${path}: HTTP ${status}: ${body}`);
      return true;
    };
    const processes = [...this.#running.values()];
    await waitFor(what, ok, { timeoutMilliseconds: startTimeout, processes });
  }

  /** **Errors**: before the API server has made its certificate. */
  #access(): ApiAccess {
    const { layout, users } = this.#props;
    const ca = readFileSync(paths(layout).ca, 'utf8');
    return { url: apiServerUrl(layout), ca, token: users.get(ownUsers.starter)?.token ?? '' };
  }
}

/** Whether the etcd at `url` has a member of that name: on a lost port, another sandbox's etcd would answer. */
async function hasMember(url: string, name: string): Promise<true | undefined> {
  const signal = AbortSignal.timeout(5_000);
  const answer = await fetch(`${url}/v3/cluster/member/list`, { method: 'POST', body: '{}', signal });
  return (await answer.text()).includes(`"${name}"`) ? true : undefined;
}
