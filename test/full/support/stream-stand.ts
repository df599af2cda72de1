import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PolicyRule } from '../../../src/install/rules.js';
import { streamIngress as kind } from '../../../src/kinds/stream-ingress/kind.js';
import { DEFAULT_TARGET } from '../../../src/kinds/stream-ingress/targets.js';
import type { StreamIngressPolicy, TargetProps } from '../../../src/kinds/stream-ingress/targets.js';
import type { Cluster } from './cluster.js';
import { startController } from './controller.js';
import type { ControllerProps, RunningController } from './controller.js';
import { installCrd } from './crds.js';
import { Proxy } from './stream-proxy.js';
import { makeUpstream } from './upstreams.js';
import type { UpstreamProps } from './upstreams.js';

export interface StandProps {
  readonly cluster: Cluster;
  readonly user: string;
  /** What the namespaces with StreamIngresses and upstreams are called in the test. */
  readonly namespaces: readonly string[];
  /** The targets by name, each with an ingress namespace of its own; flags describe the one called `default`. */
  readonly targets: Readonly<Record<string, NamelessTarget>>;
}

/** With its namespaces as they are called in the test. */
type NamelessTarget = Omit<TargetProps, 'name' | 'ingressNamespace'>;

/** How a controller is started. */
export interface Start {
  /** Of the policy, beside the targets. @default - nothing */
  readonly policy?: Omit<StreamIngressPolicy, 'targets'>;
  /** The value of `--ingress-controller`. @default - not given */
  readonly ingressController?: string;
  /** @default - what is installed */
  readonly rights?: (installed: PolicyRule[]) => PolicyRule[];
}

/** A controller of StreamIngresses, with targets and namespaces that no other test knows. */
export class Stand implements AsyncDisposable {
  private running: RunningController | undefined;

  private constructor(
    private readonly props: StandProps,
    private readonly folder: string,
    private readonly names: ReadonlyMap<string, string>,
    private readonly proxies: ReadonlyMap<string, Proxy>,
  ) {}

  /** Makes what is needed; no controller runs yet. */
  static async make(props: StandProps): Promise<Stand> {
    const { cluster, user } = props;
    await installCrd(cluster, kind);
    const names = new Map<string, string>();
    for (const name of props.namespaces) names.set(name, await cluster.makeNamespace(`streams-${name}`));
    const proxies = new Map<string, Proxy>();
    for (const name of Object.keys(props.targets)) {
      const namespace = await cluster.makeNamespace(`ingress-${name}`);
      proxies.set(name, new Proxy(cluster, user, name, namespace));
    }
    return new Stand(props, await mkdtemp(join(tmpdir(), 'streams-')), names, proxies);
  }

  get controller(): RunningController {
    if (!this.running) throw new Error('No controller has been started');
    return this.running;
  }

  /** The namespace that the test calls so. */
  namespace(name: string): string {
    return known(this.names, name);
  }

  proxy(target: string): Proxy {
    return known(this.proxies, target);
  }

  /** The Services of all targets, as the chart makes them. */
  async makeServices(): Promise<void> {
    for (const proxy of this.proxies.values()) await proxy.makeService();
  }

  /** Starts the controller; ends the one before. */
  async start(start: Start = {}): Promise<void> {
    const { cluster, user } = this.props;
    await this.running?.kill();
    this.running = await startController({ cluster, user, ...(await this.settings(start)) });
  }

  /** What a controller of this stand is started with, whoever starts it. */
  async settings({ policy = {}, ingressController, rights }: Start = {}): Promise<
    Pick<ControllerProps, 'kinds' | 'namespaces' | 'rights' | 'args'>
  > {
    const flags = this.described(ingressController);
    const section: StreamIngressPolicy = { ...policy, targets: this.targets() };
    const file = join(this.folder, 'policy.yaml');
    await writeFile(file, JSON.stringify({ [kind.name]: section }));
    const namespaces = [...this.names.values()];
    return {
      ...{ kinds: [kind], namespaces },
      ...(rights && { rights }),
      args: ['--policy', file, ...Object.entries(flags).flat()],
    };
  }

  /** Waits until every controller has looked at what there was when it was started. */
  async hasLooked(): Promise<void> {
    for (const name of ['streamingress', 'streamingress-targets'])
      await this.controller.logged((line) => line.msg === 'Reconciled' && line.controller === name);
  }

  makeUpstream(namespace: string, name?: string, props?: UpstreamProps): Promise<void> {
    return makeUpstream(this.props.cluster, namespace, name, props);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.running?.kill();
    await rm(this.folder, { recursive: true });
  }

  /** The flags that describe the target `default`. */
  private described(ingressController: string | undefined): Readonly<Record<string, string>> {
    const proxy = this.proxies.get(DEFAULT_TARGET);
    if (!proxy) return {};
    return {
      '--ingress-namespace': proxy.namespace,
      ...(ingressController !== undefined && { '--ingress-controller': ingressController }),
    };
  }

  private targets(): TargetProps[] {
    const listed = Object.entries(this.props.targets).filter(([name]) => name !== DEFAULT_TARGET);
    return listed.map(([name, { namespaces, ...props }]) => ({
      ...{ name, ingressNamespace: this.proxy(name).namespace, ...props },
      ...(namespaces && { namespaces: namespaces.map((each) => this.namespace(each)) }),
    }));
  }
}

function known<T>(map: ReadonlyMap<string, T>, name: string): T {
  const found = map.get(name);
  if (found === undefined) throw new Error(`The stand has no ${name}`);
  return found;
}
