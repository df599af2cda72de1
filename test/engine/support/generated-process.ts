import type { GeneratedSecrets } from '../../../src/author/generated.js';
import { Api } from '../../../src/client/api.js';
import type { Change } from '../../../src/contract/change.js';
import type { CustomResource } from '../../../src/contract/object.js';
import type { GenerateStep } from '../../../src/contract/plan.js';
import type { Hand } from '../../../src/engine/plan/hand.js';
import { handlersOf, interpret } from '../../../src/engine/plan/interpret.js';
import { Memory } from '../../../src/engine/steps/memory.js';
import { StoreReader, Stores } from '../../../src/engine/watch/reader.js';
import { silentLogger } from '../../../src/telemetry/logger.js';
import { Metrics } from '../../../src/telemetry/metrics.js';
import { secretType } from '../../../src/values/generated.js';
import { OWNER } from './apply-setup.js';
import { plan } from './bench.js';
import { MANAGER, WIDGET } from './builders.js';
import type { FakeApiServer } from './fake-api-server.js';
import { VirtualClock } from './virtual-clock.js';

/** A process that makes generated values, and what it has seen of the cluster. */
export class GeneratedProcess {
  readonly hand: Hand;
  readonly reader: StoreReader;

  constructor(
    server: FakeApiServer,
    private readonly generated: GeneratedSecrets,
    { clock = new VirtualClock(), isDry = false } = {},
  ) {
    const selector = { type: secretType, selector: generated.selector, mapsTo: () => [] };
    const stores = new Stores({ perNamespace: false, freeze: true });
    const watches = [generated.watch(selector), { type: WIDGET, mapsTo: () => [] }];
    this.reader = StoreReader.open(watches, stores);
    for (const { store } of stores.all()) store.setFollowed(undefined, true);
    const never = new AbortController().signal;
    this.hand = {
      ...{ api: new Api(server), reader: this.reader, memory: new Memory(clock), clock },
      ...{ metrics: new Metrics(), log: silentLogger, events: { send: () => undefined }, drift: 'correct' },
      ...{ writer: { controller: this.reader }, isDry, signal: never, stopping: never },
    };
  }

  async generate(
    cr: CustomResource,
    what: Omit<GenerateStep, 'do' | 'object' | 'owner' | 'fieldManager'>,
  ): Promise<Change> {
    const object = this.generated.secretOf(cr);
    const step: GenerateStep = { do: 'generate', object, owner: OWNER, fieldManager: MANAGER, ...what };
    return (await interpret(plan({ steps: [step] }), this.hand, handlersOf())).changes[0]!;
  }
}
