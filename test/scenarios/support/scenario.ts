import { join } from 'node:path';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { expect, inject } from 'vitest';
import { openSandbox } from '../../../sandbox/client.js';
import type { SandboxClient } from '../../../sandbox/client.js';
import { kubeconfigFor } from '../../../sandbox/kubeconfig.js';
import { paths } from '../../../sandbox/layout.js';
import { resourceType } from '../../../src/contract/resource.js';
import { Cluster } from '../../cluster/support/cluster.js';
import { startController } from '../../cluster/support/controller.js';
import type { ControllerProps, RunningController } from '../../cluster/support/controller.js';
import { installCrd } from '../../cluster/support/crds.js';
import { Subject } from '../../cluster/support/subject.js';
import type { RecordedRequest } from './exchange.js';
import { FaultProxy } from './fault-proxy.js';
import { appServices } from './kinds.js';
import type { ScenarioKind } from './kinds.js';
import { statusesTellTheTruth } from './truth.js';
import type { TruthOptions } from './truth.js';

const serviceAccounts = resourceType({ apiVersion: 'v1', kind: 'ServiceAccount' });

export interface ScenarioProps {
  /** Begins the name of the namespace. */
  readonly purpose: string;
  /** @default - AppService */
  readonly kind?: ScenarioKind;
  /** @default - the one that all share */
  readonly sandbox?: SandboxClient;
  /** Whether the API server knows the kind from the start. @default true */
  readonly installed?: boolean;
}

export interface StartProps extends Partial<ControllerProps> {
  /** @default - the scenario's */
  readonly kind?: ScenarioKind;
  /** With rights in all namespaces, and watching them all unless the arguments say otherwise. @default false */
  readonly clusterWide?: boolean;
}

/** A controller behind a proxy of its own, in a namespace of its own, as a user of its own. */
export class Scenario implements AsyncDisposable {
  readonly subject: Subject;
  /** Who the controller is, in the API server's eyes. */
  readonly user: string;
  private running: RunningController | undefined;

  private constructor(
    readonly cluster: Cluster,
    readonly proxy: FaultProxy,
    readonly kind: ScenarioKind,
    readonly namespace: string,
    private readonly kubeconfig: string,
  ) {
    this.subject = new Subject(cluster, kind.kind, namespace);
    this.user = userOf(namespace);
  }

  /** Nothing runs yet but the proxy: see `startController`. */
  static async prepare(props: ScenarioProps): Promise<Scenario> {
    const { purpose, kind = appServices, installed = true } = props;
    const sandbox = props.sandbox ?? openSandbox(inject('sandbox'));
    const cluster = new Cluster(sandbox);
    if (installed) await installCrd(cluster, kind.kind);
    const namespace = await cluster.makeNamespace(purpose);
    const ca = readFileSync(paths(sandbox).ca, 'utf8');
    const key = readFileSync(join(paths(sandbox).certificates, 'apiserver.key'), 'utf8');
    const proxy = await FaultProxy.start({ url: sandbox.url, ca }, { certificate: ca, key });
    const user = { name: userOf(namespace), token: await tokenFor(cluster, namespace) };
    const kubeconfig = paths(sandbox).kubeconfig(namespace);
    await writeFile(kubeconfig, kubeconfigFor({ url: proxy.url, ca }, user), { mode: 0o600 });
    return new Scenario(cluster, proxy, kind, namespace, kubeconfig);
  }

  /** With a controller that works. */
  static async start(props: ScenarioProps): Promise<Scenario> {
    const scenario = await Scenario.prepare(props);
    await scenario.startController();
    return scenario;
  }

  get controller(): RunningController {
    if (!this.running) throw new Error('The controller has not been started');
    return this.running;
  }

  /** Starts the controller, or the next one once the last has been stopped. */
  async startController({
    clusterWide = false,
    kind: chosen = this.kind,
    ...props
  }: StartProps = {}): Promise<RunningController> {
    const { kind, config } = chosen;
    this.running = await startController({
      ...{ cluster: this.cluster, user: this.user, kubeconfig: this.kubeconfig },
      ...{ kinds: [kind], ...(config !== undefined && { config }) },
      ...(!clusterWide && { namespaces: [this.namespace] }),
      ...props,
    });
    return this.running;
  }

  /** The requests from now on, as the proxy has them. */
  requestsFromNowOn(): () => RecordedRequest[] {
    const { requests } = this.proxy;
    const before = requests.length;
    return () => requests.slice(before);
  }

  /** Everything is as it is meant to be, and the controller has nothing to be ashamed of. */
  async endsWell(options: TruthOptions & { readonly kind?: ScenarioKind } = {}): Promise<void> {
    const { kind = this.kind } = options;
    await statusesTellTheTruth(new Subject(this.cluster, kind.kind, this.namespace), options);
    expect(this.controller.log.filter(({ level }) => level === 'error' || level === 'fatal')).toEqual([]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.running?.kill();
    await this.proxy[Symbol.asyncDispose]();
    await this.cluster.close();
  }
}

/** The writes among them that aren't about the lease, as in `PATCH deployments/web 201`. */
export function writesIn(requests: readonly RecordedRequest[]): string[] {
  return requests.filter(({ method, resource }) => method !== 'GET' && resource !== 'leases').map(summaryOf);
}

export function summaryOf({ method, resource, name, subresource, status }: RecordedRequest): string {
  const what = [resource, name, subresource].filter((part) => part !== undefined).join('/');
  return `${method} ${what} ${status ?? 'unanswered'}`;
}

/** Lives outside the scenario's namespace, which the scenario may delete. */
function userOf(namespace: string): string {
  return `system:serviceaccount:default:${namespace}`;
}

async function tokenFor(cluster: Cluster, name: string): Promise<string> {
  const metadata = { name, namespace: 'default' };
  await cluster.create(serviceAccounts, { apiVersion: 'v1', kind: 'ServiceAccount', metadata });
  const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest' };
  const { status, body } = await cluster.send(
    'POST',
    `/api/v1/namespaces/default/serviceaccounts/${name}/token`,
    { body: { ...request, spec: { expirationSeconds: 86_400 } } },
  );
  expect(status, String(body.message)).toBe(201);
  return (body.status as { token: string }).token;
}
