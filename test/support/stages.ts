import { writeFile } from 'node:fs/promises';
import { expect, inject } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import type { SandboxClient } from '../../sandbox/client.js';
import type { Condition } from '../../src/contract/conditions.js';
import type { Kind } from '../../src/contract/kind.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import { streamIngress } from '../../src/kinds/stream-ingress/kind.js';
import type { ConfiguredKind } from './bundle.js';
import { Cluster, eventually, installCrd, kubeconfigOf } from './cluster.js';
import { FaultProxy } from './fault-proxy.js';
import type { RecordedRequest } from './fault-proxy.js';
import { Gate } from './faults.js';
import type { Matcher } from './faults.js';
import { Jobs } from './jobs.js';
import { closeCluster, startController } from './operator.js';
import type { ControllerProps, RunningController } from './operator.js';
import { requestsFromNowOn, settled, writes } from './requests.js';
import { chartPorts, IngressNginx, makeUpstream, ours, portTexts } from './streams.js';
import type { ChartPort } from './streams.js';
import { Subject } from './subject.js';
import { statusesTellTheTruth } from './truth.js';
import type { TruthOptions } from './truth.js';

/** As small as an AppService gets: nothing about it changes by itself. */
export const small = { size: 0, image: 'example.com/web:1', ports: [{ port: 80 }] };

export interface StageProps {
  /** Begins the name of the namespace. */
  readonly purpose: string;
  /** @default - the one that all share */
  readonly sandbox?: SandboxClient;
}

/** Parts of a stage. */
export interface Scenery {
  readonly cluster: Cluster;
  readonly proxy: FaultProxy;
  readonly namespace: string;
  /** Leads through the proxy. */
  readonly kubeconfig: string;
}

/** Makes a namespace and a user of its own, and a proxy between that user and the API server; nothing else runs yet. */
export async function sceneryFor(
  { purpose, sandbox = openSandbox(inject('sandbox')) }: StageProps,
  ...installed: readonly Kind[]
): Promise<Scenery> {
  const cluster = new Cluster(sandbox);
  await installCrd(cluster, ...installed);
  const namespace = await cluster.makeNamespace(purpose);
  const proxy = await FaultProxy.start(sandbox);
  const kubeconfig = await kubeconfigOf(cluster, userOf(namespace), { server: proxy.url });
  return { cluster, proxy, namespace, kubeconfig };
}

/** One controller at a time behind the proxy. */
export class Stage implements AsyncDisposable {
  readonly cluster: Cluster;
  readonly proxy: FaultProxy;
  readonly namespace: string;
  /** Name of the controller to the API server. */
  readonly user: string;
  protected readonly kubeconfig: string;
  private running: RunningController | undefined;

  constructor({ cluster, proxy, namespace, kubeconfig }: Scenery) {
    this.cluster = cluster;
    this.proxy = proxy;
    this.namespace = namespace;
    this.user = userOf(namespace);
    this.kubeconfig = kubeconfig;
  }

  get controller(): RunningController {
    if (!this.running) throw new Error('The controller has not been started');
    return this.running;
  }

  /** Starts the controller, or the next one once the last has been stopped. */
  async run(props: Omit<ControllerProps, 'cluster' | 'user' | 'kubeconfig'>): Promise<RunningController> {
    const { cluster, user, kubeconfig } = this;
    this.running = await startController({ cluster, user, kubeconfig, ...props });
    return this.running;
  }

  /** Records the requests from now on, as the proxy has them. */
  requestsFromNowOn(): () => RecordedRequest[] {
    const { requests } = this.proxy;
    const before = requests.length;
    return () => requests.slice(before);
  }

  /** Holds a request back, and waits until it is there. Returns how to let it, and all that follow it, pass. */
  async held(matches: Matcher, act: () => Promise<unknown>): Promise<Gate> {
    const gate = new Gate();
    this.proxy.on(matches, gate.fault);
    await act();
    await eventually(() => {
      expect(gate.held).toBe(1);
    });
    return gate;
  }

  /** Kills the controller while a request is held back, which never reaches the API server. */
  async killedWhileHeld(matches: Matcher, act: () => Promise<unknown>): Promise<undefined> {
    const gate = new Gate();
    const rule = this.proxy.on(matches, gate.fault);
    await act();
    await eventually(() => {
      expect(gate.held).toBe(1);
    });
    await this.controller.kill();
    rule.remove();
  }

  logsNoError(): void {
    expect(this.controller.log.filter(({ level }) => level === 'error' || level === 'fatal')).toEqual([]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await closeCluster(this.cluster);
    await this.proxy[Symbol.asyncDispose]();
  }
}

/** Lives outside the scenario's namespace, which the scenario may delete. */
function userOf(namespace: string): string {
  return `${namespace}-operator`;
}

export interface ScenarioProps extends StageProps {
  /** @default - AppService */
  readonly kind?: ConfiguredKind;
}

export interface StartProps extends Partial<ControllerProps> {
  /** @default - the scenario's */
  readonly kind?: ConfiguredKind;
  /** With rights in all namespaces, and watching them all unless the arguments say otherwise. @default false */
  readonly clusterWide?: boolean;
}

/** A controller of children of its own behind a proxy of its own, in a namespace of its own, as a user of its own. */
export class Scenario extends Stage {
  readonly subject: Subject;

  private constructor(
    scenery: Scenery,
    readonly kind: ConfiguredKind,
  ) {
    super(scenery);
    this.subject = new Subject(this.cluster, kind.kind, this.namespace);
  }

  /** Makes all but the controller: see `startController`. */
  static async prepare({ kind = { kind: appService }, ...props }: ScenarioProps): Promise<Scenario> {
    return new Scenario(await sceneryFor(props, kind.kind), kind);
  }

  static async start(props: ScenarioProps): Promise<Scenario> {
    const scenario = await Scenario.prepare(props);
    await scenario.startController();
    return scenario;
  }

  /** Starts the controller, or the next one once the last has been stopped. */
  async startController({
    clusterWide = false,
    kind: { kind, config } = this.kind,
    ...props
  }: StartProps = {}): Promise<RunningController> {
    return this.run({
      ...{ kinds: [kind], ...(config !== undefined && { config }) },
      ...(!clusterWide && { namespaces: [this.namespace] }),
      ...props,
    });
  }

  /** Creates custom resources, and waits until each is Ready. */
  async createReady(spec: object, ...names: readonly string[]): Promise<void> {
    for (const name of names) await this.subject.create(name, spec);
    for (const name of names) await this.subject.ready(name);
  }

  async settled(): Promise<void> {
    await settled(this.cluster, this.user);
  }

  /** Waits until everything is as it is meant to be; the controller has logged no error. */
  async endsWell(options: TruthOptions & { readonly kind?: ConfiguredKind } = {}): Promise<void> {
    const { kind = this.kind } = options;
    await statusesTellTheTruth(new Subject(this.cluster, kind.kind, this.namespace), options);
    this.logsNoError();
  }
}

/** Lists the writes among them that aren't about the lease, as in `PATCH deployments/web 201`. */
export function writesIn(requests: readonly RecordedRequest[]): string[] {
  return requests.filter(({ method, resource }) => method !== 'GET' && resource !== 'leases').map(summaryOf);
}

export function summaryOf({ method, resource, name, subresource, status }: RecordedRequest): string {
  const what = [resource, name, subresource].filter((part) => part !== undefined).join('/');
  return `${method} ${what} ${status ?? 'unanswered'}`;
}

type Entries = Readonly<Record<string, string>>;

/** StreamIngresses, and the shared objects of an ingress-nginx in a namespace of its own. */
export class IngressStage extends Stage {
  private constructor(
    scenery: Scenery,
    readonly nginx: IngressNginx,
  ) {
    super(scenery);
  }

  /** The chart is installed, the upstream `db` is there, and a controller works. */
  static async start(purpose: string): Promise<IngressStage> {
    const scenery = await sceneryFor({ purpose }, streamIngress);
    const { cluster, namespace } = scenery;
    const ingress = await cluster.makeNamespace(`${purpose}-ingress`);
    const stage = new IngressStage(scenery, new IngressNginx(cluster, userOf(namespace), undefined, ingress));
    await stage.nginx.makeService();
    await makeUpstream(cluster, namespace);
    await stage.startController();
    return stage;
  }

  async startController(): Promise<RunningController> {
    const policy = { targets: [{ name: 'default', ingressNamespace: this.nginx.namespace }] };
    const file = `${this.kubeconfig}.policy`;
    await writeFile(file, JSON.stringify({ streamingress: policy }));
    return this.run({ kinds: [streamIngress], namespaces: [this.namespace], args: ['--policy', file] });
  }

  /** Applies keys of the ConfigMap as another manager: all that are its own. */
  async applyKeys(data: Entries, manager: string): Promise<void> {
    await this.nginx.put(this.nginx.tcp, { data }, manager);
  }

  /** Asks for a port under the name `p<port>`. */
  async ask(listen: number): Promise<void> {
    await this.nginx.ask(this.namespace, `p${listen}`, { listen });
  }

  async drop(listen: number): Promise<void> {
    await this.cluster.delete(this.place(listen));
  }

  /** Returns the condition Ready of the one for that port. */
  async told(listen: number): Promise<Condition | undefined> {
    const { status } = await this.cluster.get<{ status?: { conditions?: Condition[] } }>(this.place(listen));
    return status?.conditions?.find(({ type }) => type === 'Ready');
  }

  /** Throws unless exactly these ports of ours are open, and reported to be. */
  async requireOpen(
    listens: readonly number[],
    foreign: Entries = {},
    chart: readonly ChartPort[] = chartPorts,
  ): Promise<void> {
    expect(await this.nginx.entries()).toEqual({ ...this.ourEntries(listens), ...foreign });
    expect(await this.nginx.ports()).toEqual(portsWith(listens, chart));
    for (const listen of listens)
      expect(await this.told(listen), `p${listen}`).toMatchObject({ status: 'True', reason: 'Programmed' });
  }

  /** Returns the entries of a set of ports in the ConfigMap. */
  ourEntries(listens: readonly number[]): Entries {
    return Object.fromEntries(listens.map((listen) => [listen, `${this.namespace}/db:5432`]));
  }

  /** Records the writes to the shared objects from now on, as the API server has them: `patch services 200`. */
  async sharedWritesFromNowOn(): Promise<() => Promise<string[]>> {
    const requests = await requestsFromNowOn(this.cluster, this.user, this.nginx.namespace);
    return async () =>
      writes(await requests()).map(
        ({ verb, objectRef, code }) => `${verb} ${objectRef?.resource ?? ''} ${code ?? ''}`,
      );
  }

  /** Waits until the controller has worked out everything since its start, and has no more to do. */
  async atRest(): Promise<void> {
    for (const name of ['streamingress', 'streamingress-targets'])
      await this.controller.logged(({ msg, controller }) => msg === 'reconciled' && controller === name);
    await settled(this.cluster, this.user);
  }

  private place(listen: number) {
    return { type: streamIngress.type, namespace: this.namespace, name: `p${listen}` };
  }
}

/** Describes the ports of the Service with a set of ours. */
export function portsWith(listens: readonly number[], chart: readonly ChartPort[] = chartPorts): string[] {
  return [...portTexts(chart), ...listens.map((listen) => ours(listen))].sort();
}

/** JobWatchers and Jobs in a namespace. */
export class JobStage extends Stage {
  readonly jobs: Jobs;

  private constructor(scenery: Scenery) {
    super(scenery);
    this.jobs = new Jobs(this.cluster, this.namespace);
  }

  /** Makes all but the controller. */
  static async prepare(purpose: string, sandbox: SandboxClient): Promise<JobStage> {
    return new JobStage(await sceneryFor({ purpose, sandbox }, jobWatcher));
  }

  static async start(purpose: string, sandbox: SandboxClient): Promise<JobStage> {
    const stage = await JobStage.prepare(purpose, sandbox);
    await stage.startController();
    return stage;
  }

  async startController(props: Partial<ControllerProps> = {}): Promise<RunningController> {
    return this.run({ kinds: [jobWatcher], namespaces: [this.namespace], ...props });
  }

  deletionsFromNowOn(): Promise<(prefix?: string) => Promise<string[]>> {
    return this.jobs.deletionsFromNowOn(this.user);
  }

  /** Lists what the controller has logged of its deletions, sorted: `pi deleted`. */
  audited(prefix = ''): string[] {
    return this.controller.log
      .filter(({ outcome, watcher }) => outcome !== undefined && watcher !== undefined)
      .map(({ name, outcome }) => `${name ?? ''} ${String(outcome)}`)
      .filter((line) => line.startsWith(prefix))
      .sort();
  }
}
