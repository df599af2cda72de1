import { writeFile } from 'node:fs/promises';
import { expect } from 'vitest';
import type { Condition } from '../../../src/contract/conditions.js';
import type { AnyObject } from '../../../src/contract/object.js';
import { resourceType } from '../../../src/contract/resource.js';
import { configMaps, services } from '../../full/support/cluster.js';
import type { Manifest, Place } from '../../full/support/cluster.js';
import type { RunningController } from '../../full/support/controller.js';
import { requestsFromNowOn, writes } from '../../full/support/requests.js';
import { settled } from '../../full/support/settled.js';
import { streamIngress as kind } from '../../../src/kinds/stream-ingress/kind.js';
import { sceneryFor, Stage } from './stage.js';
import type { Scenery } from './stage.js';

const slices = resourceType({ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice' });
/** A port of a Service, as a chart writes it. */
export interface ChartPort {
  readonly name: string;
  readonly port: number;
  readonly targetPort: number | string;
}

export const chartPorts: readonly ChartPort[] = [
  { name: 'http', port: 80, targetPort: 'http' },
  { name: 'https', port: 443, targetPort: 'https' },
];

type Entries = Readonly<Record<string, string>>;

/** StreamIngresses, and the shared objects of an ingress-nginx in a namespace of its own. */
export class IngressStage extends Stage {
  readonly service: Place;
  readonly tcp: Place;

  private constructor(
    scenery: Scenery,
    private readonly ingress: string,
  ) {
    super(scenery);
    this.service = { type: services, namespace: ingress, name: 'ingress-nginx-controller' };
    this.tcp = { type: configMaps, namespace: ingress, name: 'tcp-services' };
  }

  /** The chart is installed and the upstream `db` is there; no controller runs yet. */
  static async prepare(purpose: string): Promise<IngressStage> {
    const scenery = await sceneryFor({ purpose, installed: [kind] });
    const stage = new IngressStage(scenery, await scenery.cluster.makeNamespace(`${purpose}-ingress`));
    await stage.installChart();
    await stage.makeUpstream();
    return stage;
  }

  /** With a controller that works. */
  static async start(purpose: string): Promise<IngressStage> {
    const stage = await IngressStage.prepare(purpose);
    await stage.startController();
    return stage;
  }

  async startController(): Promise<RunningController> {
    const policy = { targets: [{ name: 'default', ingressNamespace: this.ingress }] };
    const file = `${this.kubeconfig}.policy`;
    await writeFile(file, JSON.stringify({ streamingress: policy }));
    const namespaces = [this.namespace];
    return this.run({
      kinds: [kind],
      ...{ namespaces, args: ['--policy', file] },
    });
  }

  /** The Service, as Helm applies it. */
  async installChart(ports = chartPorts): Promise<void> {
    await this.cluster.apply(
      services,
      this.shared('Service', this.service, { spec: { selector: { app: 'nginx' }, ports } }),
      'helm',
    );
  }

  /** Somebody applies keys of the ConfigMap: all that are theirs. */
  async applyKeys(data: Entries, manager: string): Promise<void> {
    await this.cluster.apply(configMaps, this.shared('ConfigMap', this.tcp, { data }), manager);
  }

  /** Asks for a port under the name `p<port>`, or another. */
  async ask(listen: number, name = `p${listen}`): Promise<void> {
    const metadata = { namespace: this.namespace, name };
    const spec = { listen, upstream: { service: 'db', port: 5432 } };
    const { apiVersion, kind: of } = kind.type;
    await this.cluster.create(kind.type, { apiVersion, kind: of, metadata, spec });
  }

  async drop(listen: number): Promise<void> {
    await this.cluster.delete(this.place(`p${listen}`));
  }

  /** What the ConfigMap has; nothing where it isn't there. */
  async entries(): Promise<Entries | undefined> {
    const found = await this.cluster.find<AnyObject & { readonly data?: Entries }>(this.tcp);
    return found && (found.data ?? {});
  }

  /** As in `si-9000-tcp 9000 9000`, sorted. */
  async ports(): Promise<string[]> {
    const { spec } = await this.cluster.get<{ spec: { ports: ChartPort[] } }>(this.service);
    return portTexts(spec.ports);
  }

  /** The condition Ready of the one for that port. */
  async told(listen: number): Promise<Condition | undefined> {
    const { status } = await this.cluster.get<{ status?: { conditions?: Condition[] } }>(
      this.place(`p${listen}`),
    );
    return status?.conditions?.find(({ type }) => type === 'Ready');
  }

  /** Throws unless these ports are open, and told to be; and of ours no others. */
  async requireOpen(
    listens: readonly number[],
    {
      foreign = {},
      chart = chartPorts,
    }: { readonly foreign?: Entries; readonly chart?: readonly ChartPort[] } = {},
  ): Promise<void> {
    expect(await this.entries()).toEqual({ ...this.ourEntries(listens), ...foreign });
    expect(await this.ports()).toEqual(this.portsWith(listens, chart));
    for (const listen of listens)
      expect(await this.told(listen), `p${listen}`).toMatchObject({ status: 'True', reason: 'Programmed' });
  }

  /** What a set of ports comes to in the ConfigMap. */
  ourEntries(listens: readonly number[]): Entries {
    return Object.fromEntries(listens.map((listen) => [listen, `${this.namespace}/db:5432`]));
  }

  /** What a set of ports comes to in the Service. */
  portsWith(listens: readonly number[], chart = chartPorts): string[] {
    return portTexts([...chart, ...listens.map(ourPort)]);
  }

  /** The writes to the shared objects from now on, as the API server has them: `patch services 200`. */
  async sharedWritesFromNowOn(): Promise<() => Promise<string[]>> {
    const requests = await requestsFromNowOn(this.cluster, this.user);
    return async () =>
      writes(await requests())
        .filter(({ objectRef }) => objectRef?.namespace === this.ingress)
        .map(({ verb, objectRef, code }) => `${verb} ${objectRef?.resource ?? ''} ${code ?? ''}`);
  }

  /** The controller has worked out everything since its start, and has no more to do. */
  async atRest(): Promise<void> {
    for (const name of ['streamingress', 'streamingress-targets'])
      await this.controller.logged(({ msg, controller }) => msg === 'Reconciled' && controller === name);
    await settled(this.cluster, this.user);
  }

  private place(name: string): Place {
    return { type: kind.type, namespace: this.namespace, name };
  }

  private shared(of: string, { namespace, name }: Place, content: object): Manifest {
    return { apiVersion: 'v1', kind: of, metadata: { name, namespace: namespace ?? '' }, ...content };
  }

  private async makeUpstream(): Promise<void> {
    const metadata = { namespace: this.namespace, name: 'db' };
    await this.cluster.create(services, {
      ...{ apiVersion: 'v1', kind: 'Service', metadata },
      spec: { ports: [{ name: 'sql', port: 5432 }] },
    });
    await this.cluster.create(slices, {
      ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', addressType: 'IPv4' },
      metadata: { ...metadata, labels: { 'kubernetes.io/service-name': 'db' } },
      ports: [{ name: 'sql', port: 5432, protocol: 'TCP' }],
      endpoints: [{ addresses: ['10.1.2.3'], conditions: { ready: true } }],
    });
  }
}

function ourPort(port: number): ChartPort {
  return { name: `si-${port}-tcp`, port, targetPort: port };
}

function portTexts(ports: readonly ChartPort[]): string[] {
  return ports.map(({ name, port, targetPort }) => `${name} ${port} ${targetPort}`).sort();
}
