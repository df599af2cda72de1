import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { Command, Option } from 'commander';
import type { Controller } from '../contract/controller.js';
import type { Kind, KindContext, Policy, FlagValues, Render } from '../contract/kind.js';
import type { ClusterAccess } from '../engine/kubeconfig.js';
import type { ElectionProps, Manager } from '../engine/manager.js';
import { builtInFlags } from '../kinds/flags.js';
import type { LogFormat, Logger, LogLevel } from '../telemetry/logger.js';
import type { Metrics } from '../telemetry/metrics.js';
import { kindsOnRequest, loadKinds } from './config.js';
import { BUG } from './exit.js';
import { addKindFlags, kindFlagValues, namespace, positiveInteger, sharedOptions } from './options.js';
import { FollowedPolicy, policyFileOf } from './policy-file.js';
import { startServers } from './servers.js';
import { packageVersion } from './version.js';
import { clusterAccess } from './with-cluster.js';
import type { ClusterOptions } from './with-cluster.js';

interface RunOptions extends ClusterOptions {
  readonly config?: string;
  readonly kinds?: string[];
  readonly policy?: string;
  readonly watchNamespace?: string[];
  readonly workers: number;
  readonly leaderElect?: boolean;
  readonly leaderElectionNamespace?: string;
  readonly logLevel: LogLevel;
  readonly logFormat: LogFormat;
  readonly metricsBindAddress: string;
  readonly healthBindAddress: string;
}

/** `reconstruct run`: the controller. */
export function runCommand(flags = builtInFlags): Command {
  const command = new Command('run')
    .description('keep the cluster as its custom resources say, until SIGTERM or SIGINT')
    .addOption(sharedOptions.kubeconfig())
    .addOption(sharedOptions.context())
    .addOption(sharedOptions.config())
    .addOption(sharedOptions.kinds())
    .addOption(sharedOptions.policy('everything but routes'))
    .addOption(sharedOptions.watchNamespace())
    .addOption(
      new Option('--workers <number>', 'custom resources in work at once, per kind')
        .argParser(positiveInteger)
        .default(16),
    )
    .addOption(new Option('--leader-elect', 'work only while it holds the lease (default: in a Pod, yes)'))
    .addOption(new Option('--no-leader-elect', 'work at once; no other may run beside it'))
    .addOption(
      new Option(
        '--leader-election-namespace <namespace>',
        "where the lease is, in the cluster it works on (default: the context's, else the Pod's namespace)",
      ).argParser(namespace),
    )
    .addOption(sharedOptions.logLevel())
    .addOption(sharedOptions.logFormat())
    .addOption(new Option('--metrics-bind-address <address>', 'serves /metrics; 0 is off').default(':8080'))
    .addOption(
      new Option('--health-bind-address <address>', 'serves /healthz and /readyz; 0 is off').default(':8081'),
    )
    .action((options: RunOptions) => run(options, kindFlagValues(flags, options)));
  return addKindFlags(command, flags);
}

async function run(options: RunOptions, flags: FlagValues): Promise<void> {
  const [{ builtInKinds }, { createLogger, debugOnSignal }, { Metrics }, { systemClock }] = await Promise.all(
    [
      import('../kinds/index.js'),
      import('../telemetry/logger.js'),
      import('../telemetry/metrics.js'),
      import('../engine/clock.js'),
    ],
  );
  const kinds = await loadKinds({ ...options, builtIn: builtInKinds, onRequest: kindsOnRequest });
  const log = await createLogger({ level: options.logLevel, format: options.logFormat });
  const metrics = new Metrics();
  const file = await policyFileOf(options, builtInKinds);
  const policy = file && (await FollowedPolicy.open({ file, kinds, clock: systemClock, log, metrics }));
  debugOnSignal(log, systemClock);
  collectWhenIdle();
  const access = await clusterAccess(options);
  const election = electionFor(access, options);
  const controllersBy = await controllersOf(kinds, access, { ...options, followed: policy, flags });
  const controllers = controllersBy(policy?.current);
  const manager = await createManager(access, { ...options, election }, controllers, log, metrics);
  const servers = await startServers(options, manager, metrics, log);
  const stopping = new AbortController();
  endProcess(log, stopping);
  // Sockets and timers of the engine don't keep the process alive, so that it can end; this does.
  const keepAlive = setInterval(() => undefined, 2 ** 30);
  try {
    log.info(
      {
        version: packageVersion(),
        kinds: kinds.map(({ name }) => name),
        server: access.cluster.server,
        context: access.context,
        watchNamespaces: options.watchNamespace ?? 'all',
        policy: options.policy,
        policyDigest: policy?.digest,
        leaderElectionNamespace: election?.namespace,
      },
      'Starting',
    );
    policy?.follow(stopping.signal, {
      check: (changed) => void controllersBy(changed),
      changed: (names) => {
        for (const name of names) manager.lookAgain(name);
      },
    });
    await manager.run(stopping.signal);
  } finally {
    clearInterval(keepAlive);
    await Promise.all(servers.map((server) => server.close()));
  }
}

/** Stops on a signal, ends at once on a second one or on an error that nothing has caught, and logs why. */
function endProcess(log: Logger, stopping: AbortController): void {
  const stop = (signal: NodeJS.Signals): void => {
    if (!stopping.signal.aborted) {
      log.info({ signal }, 'Received a signal to stop');
      stopping.abort();
      return;
    }
    log.warn({ signal }, 'Received a second signal: ending at once, the lease is not released');
    process.off('SIGTERM', stop).off('SIGINT', stop);
    process.kill(process.pid, signal);
  };
  process.on('SIGTERM', stop).on('SIGINT', stop);
  process.on('uncaughtException', (err: unknown, origin) => {
    log.error({ err, origin }, 'Uncaught error, which is a bug: ending at once, the lease is not released');
    process.exit(BUG);
  });
}

/** Of a Pod several replicas are likely, or follow each other while one is rolled out, whatever cluster they work on. */
function electionFor(access: ClusterAccess, options: RunOptions): ElectionProps | undefined {
  if (!(options.leaderElect ?? access.inPod)) return undefined;
  return {
    namespace: options.leaderElectionNamespace ?? access.namespace,
    // A host's name alone would be taken for the same holder after a restart, while its predecessor still writes.
    identity: `${hostname()}_${randomUUID()}`,
  };
}

/**
 * Tells how the controllers of all kinds are made by a policy. What they render follows the one in force.
 * @returns throws OperatorError where a kind can't work with the policy
 */
async function controllersOf(
  kinds: readonly Kind[],
  access: ClusterAccess,
  options: RunOptions & { readonly followed: FollowedPolicy | undefined; readonly flags: FlagValues },
): Promise<(policy: Policy | undefined) => Controller[]> {
  const { renderOnce } = await import('../synth/render.js');
  const context: KindContext = {
    render: Object.assign<Render, Pick<Render, 'policyInForce'>>(
      (kind, cr) => renderOnce(kind, cr, options.followed?.current ?? {}),
      { policyInForce: () => options.followed?.current },
    ),
    flags: options.flags,
    operatorNamespace: access.namespace,
    ...(options.watchNamespace && { namespaces: options.watchNamespace }),
  };
  return (policy) =>
    kinds.flatMap((kind) => kind.controllers({ ...context, ...(policy && { policy: policy[kind.name] }) }));
}

async function createManager(
  access: ClusterAccess,
  options: RunOptions & { readonly election: ElectionProps | undefined },
  controllers: readonly Controller[],
  log: Logger,
  metrics: Metrics,
): Promise<Manager> {
  const [{ Manager }, { UndiciTransport }, { UserCredentials }] = await Promise.all([
    import('../engine/manager.js'),
    import('../engine/transport.js'),
    import('../engine/credentials.js'),
  ]);
  const credentials = new UserCredentials(access, (line) => {
    log.warn({ line }, 'Credential plugin');
  });
  return new Manager({
    controllers,
    transport: new UndiciTransport(access, `reconstruct/${packageVersion()}`, { credentials }),
    log,
    metrics,
    instance: hostname(),
    workers: options.workers,
    ...(options.election && { election: options.election }),
    ...(options.watchNamespace && { namespaces: options.watchNamespace }),
  });
}

const POLL_MILLISECONDS = 5_000;
/** Of the time between two polls. A settled controller needs a twentieth of this. */
const IDLE_SHARE = 0.02;
/** Less isn't worth a collection. */
const WORTH_COLLECTING_BYTES = 4 * 2 ** 20;

/**
 * Collects the garbage of a start or a burst once the process is idle: V8 collects when something is allocated, so it
 * would stay until there is work again. Does nothing unless Node was started with `--expose-gc`, as it is in the image;
 * doesn't keep the process alive.
 */
function collectWhenIdle(): void {
  const { gc } = globalThis;
  if (!gc) return;
  let cpu = process.cpuUsage();
  let kept = 0;
  setInterval(() => {
    const { user, system } = process.cpuUsage(cpu);
    const isIdle = (user + system) / 1000 < IDLE_SHARE * POLL_MILLISECONDS;
    if (isIdle && process.memoryUsage().heapUsed - kept > WORTH_COLLECTING_BYTES) {
      gc({ type: 'major', execution: 'sync', flavor: 'last-resort' });
      kept = process.memoryUsage().heapUsed;
    }
    cpu = process.cpuUsage();
  }, POLL_MILLISECONDS).unref();
}
