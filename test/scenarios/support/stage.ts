import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, inject } from 'vitest';
import { openSandbox } from '../../../sandbox/client.js';
import type { SandboxClient } from '../../../sandbox/client.js';
import { kubeconfigFor } from '../../../sandbox/users.js';
import { paths } from '../../../sandbox/layout.js';
import type { Kind } from '../../../src/contract/kind.js';
import { accountToken } from '../../full/support/accounts.js';
import { Cluster } from '../../full/support/cluster.js';
import { startController } from '../../full/support/controller.js';
import type { ControllerProps, RunningController } from '../../full/support/controller.js';
import { installCrd } from '../../full/support/crds.js';
import { identityOf } from '../../full/support/identity.js';
import type { RecordedRequest } from './exchange.js';
import { FaultProxy } from './fault-proxy.js';

export interface StageProps {
  /** Begins the name of the namespace. */
  readonly purpose: string;
  /** @default - the one that all share */
  readonly sandbox?: SandboxClient;
  /** What the API server is to know from the start. @default - nothing of ours */
  readonly installed?: readonly Kind[];
}

/** What a stage is made of. */
export interface Scenery {
  readonly cluster: Cluster;
  readonly proxy: FaultProxy;
  readonly namespace: string;
  /** Leads through the proxy. */
  readonly kubeconfig: string;
}

/** A namespace and a user of its own, and a proxy between that user and the API server; nothing else runs yet. */
export async function sceneryFor({ purpose, sandbox, installed = [] }: StageProps): Promise<Scenery> {
  const client = sandbox ?? openSandbox(inject('sandbox'));
  const cluster = new Cluster(client);
  for (const kind of installed) await installCrd(cluster, kind);
  const namespace = await cluster.makeNamespace(purpose);
  const ca = readFileSync(paths(client).ca, 'utf8');
  const key = readFileSync(join(paths(client).certificates, 'apiserver.key'), 'utf8');
  const proxy = await FaultProxy.start({ url: client.url, ca }, { certificate: ca, key });
  const user = userOf(namespace);
  const credentials = { name: identityOf(user), token: await accountToken(cluster, user) };
  const kubeconfig = paths(client).kubeconfig(namespace);
  await writeFile(kubeconfig, kubeconfigFor({ url: proxy.url, ca }, credentials), { mode: 0o600 });
  return { cluster, proxy, namespace, kubeconfig };
}

/** Where one controller at a time runs behind the proxy. */
export class Stage implements AsyncDisposable {
  readonly cluster: Cluster;
  readonly proxy: FaultProxy;
  readonly namespace: string;
  /** Who the controller is, in the API server's eyes. */
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

  /** The requests from now on, as the proxy has them. */
  requestsFromNowOn(): () => RecordedRequest[] {
    const { requests } = this.proxy;
    const before = requests.length;
    return () => requests.slice(before);
  }

  /** The controller has nothing to be ashamed of. */
  logsNoError(): void {
    expect(this.controller.log.filter(({ level }) => level === 'error' || level === 'fatal')).toEqual([]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.running?.kill();
    await this.proxy[Symbol.asyncDispose]();
    await this.cluster.close();
  }
}

/** Lives outside the scenario's namespace, which the scenario may delete. */
function userOf(namespace: string): string {
  return `${namespace}-operator`;
}
