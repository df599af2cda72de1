import type { SandboxClient } from '../../../sandbox/client.js';
import type { ControllerProps, RunningController } from '../../full/support/controller.js';
import { Subject } from '../../full/support/subject.js';
import type { RecordedRequest } from './exchange.js';
import { appServices } from './kinds.js';
import type { ScenarioKind } from './kinds.js';
import { sceneryFor, Stage } from './stage.js';
import type { Scenery } from './stage.js';
import { statusesTellTheTruth } from './truth.js';
import type { TruthOptions } from './truth.js';

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

/** A controller of one's own children behind a proxy of its own, in a namespace of its own, as a user of its own. */
export class Scenario extends Stage {
  readonly subject: Subject;

  private constructor(
    scenery: Scenery,
    readonly kind: ScenarioKind,
  ) {
    super(scenery);
    this.subject = new Subject(this.cluster, kind.kind, this.namespace);
  }

  /** Nothing runs yet but the proxy: see `startController`. */
  static async prepare(props: ScenarioProps): Promise<Scenario> {
    const { purpose, kind = appServices, installed = true, sandbox } = props;
    const scenery = await sceneryFor({
      purpose,
      ...(sandbox && { sandbox }),
      ...(installed && { installed: [kind.kind] }),
    });
    return new Scenario(scenery, kind);
  }

  /** With a controller that works. */
  static async start(props: ScenarioProps): Promise<Scenario> {
    const scenario = await Scenario.prepare(props);
    await scenario.startController();
    return scenario;
  }

  /** Starts the controller, or the next one once the last has been stopped. */
  async startController({
    clusterWide = false,
    kind: chosen = this.kind,
    ...props
  }: StartProps = {}): Promise<RunningController> {
    const { kind, config } = chosen;
    return this.run({
      ...{ kinds: [kind], ...(config !== undefined && { config }) },
      ...(!clusterWide && { namespaces: [this.namespace] }),
      ...props,
    });
  }

  /** Everything is as it is meant to be, and the controller has nothing to be ashamed of. */
  async endsWell(options: TruthOptions & { readonly kind?: ScenarioKind } = {}): Promise<void> {
    const { kind = this.kind } = options;
    await statusesTellTheTruth(new Subject(this.cluster, kind.kind, this.namespace), options);
    this.logsNoError();
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
