import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { DriftMode } from '../contract/plan.js';
import { ADMIN_FILES } from '../contract/kind.js';
import type { AdminFile, AdminFiles, Kind, KindContext, StandaloneController } from '../contract/kind.js';
import { Api } from '../client/api.js';
import { systemClock } from '../client/clock.js';
import { UserCredentials } from '../client/credentials.js';
import { Manager } from '../engine/loop/manager.js';
import { ScrapeReview } from '../engine/loop/scrape-review.js';
import { UndiciTransport } from '../client/transport.js';
import type { Transport } from '../client/transport.js';
import { settingsOf, synthesize } from '../render/synthesize.js';
import { certificateIn, selfSignedCertificate } from '../telemetry/certificate.js';
import { checkedPath } from '../telemetry/checks.js';
import type { Check } from '../telemetry/checks.js';
import { onceASecond, serveHttp } from '../telemetry/http.js';
import type { HttpServer, ServeOptions } from '../telemetry/http.js';
import { createLogger, debugOnSignal } from '../telemetry/logger.js';
import type { LogFormat, Logger, LogLevel } from '../telemetry/logger.js';
import { Metrics, observeProcess } from '../telemetry/metrics.js';
import { clusterAccess, transportOptions } from './cluster.js';
import { kindFlagValues } from './options.js';
import type { SharedOptions } from './options.js';
import { loadControllers } from './config.js';
import { BUG, untilInterrupted } from './exit.js';
import { CliError } from './output.js';
import { FollowedFile, readAdminFile, sectionsParser } from './admin-file.js';
import { packageVersion } from './package.js';
import type { OnUpgrade } from './upgrades.js';

interface RunOptions extends SharedOptions {
  readonly workers: number;
  readonly drift: DriftMode;
  readonly observeOnly?: boolean;
  readonly selector?: string;
  readonly watchNamespaceSelector?: string;
  /** @default apply */
  readonly onUpgrade?: OnUpgrade;
  readonly readyWithin?: number;
  readonly leaderElect?: boolean;
  readonly leaderElectionNamespace?: string;
  readonly logLevel: LogLevel;
  readonly logFormat: LogFormat;
  readonly metricsBindAddress: string;
  readonly metricsSecure?: boolean;
  readonly metricsCertPath?: string;
  readonly metricsCertName: string;
  readonly metricsCertKey: string;
  readonly healthBindAddress: string;
}

/** `reconstruct run`: the controller. */
export async function runController(options: RunOptions): Promise<void> {
  const { onUpgrade = { mode: 'apply' }, readyWithin: readySeconds = 600 } = options;
  // Before anything of the kinds is loaded, and only where it is used.
  const upgrades = onUpgrade.mode === 'apply' ? undefined : await import('./upgrades.js');
  const digestOf = upgrades?.followModules();
  const { kinds, controllers } = await loadControllers(options);
  const digest = digestOf?.();
  const { selector, watchNamespaceSelector: namespaceSelector } = options;
  checkSelectable([...kinds, ...controllers], options);
  const log = await createLogger({ level: options.logLevel, format: options.logFormat });
  const metrics = new Metrics();
  const { watchNamespace } = options;
  const files = new Map<AdminFile, FollowedFile>();
  for (const name of ADMIN_FILES) {
    const file = options[name];
    if (file === undefined) continue;
    const parse = await sectionsParser(options);
    const read = () => readAdminFile(name, file);
    const props = { name, file, kinds, clock: systemClock, log, metrics, read, parse };
    files.set(name, await FollowedFile.open(props));
  }
  const contents = (): AdminFiles => ({
    policy: files.get('policy')?.current ?? {},
    settings: files.get('settings')?.current,
  });
  const inForce = { current: contents() };
  debugOnSignal(log, systemClock);
  collectWhenIdle();
  const access = clusterAccess(options);
  const context: KindContext = {
    render: synthesize,
    inForce,
    flags: kindFlagValues(options),
    operatorNamespace: access.namespace,
    ...(watchNamespace && { namespaces: watchNamespace }),
    ...(selector !== undefined && { selector }),
    ...(namespaceSelector !== undefined && { namespaceSelector }),
    ...(upgrades &&
      digest !== undefined && {
        upgrades: upgrades.upgradesOf({
          ...{ onUpgrade, digest, kinds, inForce, readySeconds, log },
          lease: () => manager,
        }),
      }),
  };
  const controllersBy = ({ policy }: AdminFiles) =>
    [...kinds, ...controllers].flatMap((one) => one.controllers({ ...context, policy: policy?.[one.name] }));
  const credentials = new UserCredentials(access, (line) => {
    log.warn({ line }, 'credential plugin wrote a line');
  });
  // Of a Pod several replicas are likely, or follow each other while one is rolled out, whatever cluster they work on.
  const { observeOnly = false } = options;
  const election = !observeOnly &&
    (options.leaderElect ?? access.inPod) && {
      namespace: options.leaderElectionNamespace ?? access.namespace,
      // A host's name alone would be taken for the same holder after a restart, while its predecessor still writes.
      identity: `${hostname()}_${randomUUID()}`,
      ...(onUpgrade.mode === 'rollout' && {
        onAnnotated: () => {
          for (const { name } of kinds) manager.requeueAll(name);
        },
      }),
    };
  if (onUpgrade.mode === 'rollout' && !election)
    throw new CliError(
      '--on-upgrade with a number needs leader election, since the lease says where a rollout has stopped; add --leader-elect',
    );
  const transport = new UndiciTransport(access, `reconstruct/${packageVersion()}`, {
    credentials,
    ...transportOptions(options, ({ outcome, ...request }) => {
      const result = outcome instanceof Error ? { error: outcome.message } : { status: outcome };
      log.info({ ...request, ...result }, 'request sent');
    }),
  });
  const manager: Manager = new Manager({
    ...{ controllers: controllersBy(inForce.current), transport },
    ...{ log, metrics, instance: hostname(), workers: options.workers, drift: options.drift },
    ...(election && { election }),
    // Loaded only where it is used: an operator that runs for months carries no more than it needs.
    ...(observeOnly && { observer: (await import('../engine/preview/observe.js')).Observer }),
    ...(watchNamespace && { namespaces: watchNamespace }),
  });
  metrics.onScrape(() => {
    for (const { name } of upgrades ? kinds : []) {
      const state = context.upgrades?.rollout?.stateOf(name, context.upgrades.build(name) ?? '');
      metrics.rolloutStopped.set({ controller: name }, state?.isStopped ? 1 : 0);
    }
  });
  const servers = await startServers(options, { manager, transport, metrics, log });
  endOnBugs(log);
  const work = async (stopping: AbortSignal): Promise<void> => {
    const fields = {
      version: packageVersion(),
      kinds: [...kinds, ...controllers].map(({ name }) => name),
      server: access.cluster.server,
      context: access.context,
      watchNamespaces: watchNamespace ?? namespaceSelector ?? 'all',
      selector,
      observeOnly,
      ...(context.upgrades && {
        builds: Object.fromEntries(kinds.map(({ name }) => [name, context.upgrades?.build(name)])),
      }),
      policy: options.policy,
      policyDigest: files.get('policy')?.digest,
      settings: options.settings,
      settingsDigest: files.get('settings')?.digest,
      leaderElectionNamespace: election ? election.namespace : undefined,
    };
    log.info(fields, 'starting');
    for (const [name, file] of files)
      file.follow(stopping, {
        check: (sections) => {
          const changed = { ...inForce.current, [name]: sections };
          controllersBy(changed);
          // Kinds that lack a setting already are stalled alone.
          if (name === 'settings')
            for (const kind of kinds.filter((one) => hasSettings(one, inForce.current)))
              settingsOf(kind, changed);
        },
        changed: (names) => {
          inForce.current = contents();
          for (const name of names) manager.requeueAll(name);
        },
      });
    await manager.run(stopping);
  };
  const onSignal = (signal: NodeJS.Signals, isSecond: boolean): void => {
    if (isSecond)
      log.warn({ signal }, 'received a second signal, ending at once without releasing the lease');
    else log.info({ signal }, 'received a signal to stop');
  };
  await untilInterrupted(work, { onSignal }).finally(() =>
    Promise.all(servers.map((server) => server.close())),
  );
}

/** Reports whether a kind has all settings that it needs. */
function hasSettings(kind: Kind, files: AdminFiles): boolean {
  try {
    settingsOf(kind, files);
    return true;
  } catch {
    return false;
  }
}

/**
 * Refuses selections that two operators would share: what all custom resources of a kind share can't be worked out from some of
 * them, and what is in no namespace isn't divided by namespaces.
 * @throws CliError
 */
function checkSelectable(
  kinds: readonly (Kind | StandaloneController)[],
  { selector, watchNamespaceSelector }: Pick<RunOptions, 'selector' | 'watchNamespaceSelector'>,
): void {
  const isShared = (one: Kind | StandaloneController): boolean =>
    'rendering' in one ? !('each' in one.rendering) : !one.renders;
  const together = 'decide together about what they share';
  const isClusterScoped = (one: Kind | StandaloneController): boolean =>
    ('type' in one ? one.type : one.renders?.type)?.namespaced === false;
  const byNamespace = ['--watch-namespace-selector', watchNamespaceSelector] as const;
  const checks = [
    ['--selector', selector, isShared, together],
    [...byNamespace, isShared, together],
    [...byNamespace, isClusterScoped, 'are in no namespace'],
  ] as const;
  for (const [option, value, isRefused, why] of checks) {
    const refused = kinds.filter(isRefused).map(({ name }) => name);
    if (value === undefined || refused.length === 0) continue;
    const others = kinds.map(({ name }) => name).filter((name) => !refused.includes(name));
    const remedy = others.length > 0 ? `name the others with --kinds ${others.join()}` : 'leave it out';
    throw new CliError(`${option}: custom resources of ${refused.join(' and ')} ${why}; ${remedy}`);
  }
}

interface Served {
  readonly manager: Manager;
  readonly transport: Transport;
  readonly metrics: Metrics;
  readonly log: Logger;
}

/** Serves probes and metrics. @throws OperatorError `InvalidInput` for an address or a certificate that can't be used */
async function startServers(options: RunOptions, served: Served): Promise<HttpServer[]> {
  const { metricsBindAddress, healthBindAddress } = options;
  const { manager, metrics, log } = served;
  /** Passes while there is nothing to list. */
  const listing = (name: string, reasons: () => readonly string[]): Check => ({
    ...{ name, check: () => reasons().join('; ') || undefined },
  });
  const servers: HttpServer[] = [];
  if (metricsBindAddress !== '0') {
    observeProcess(metrics);
    const { contentType } = metrics.registry;
    const scrape = onceASecond(async () => ({ status: 200, body: await metrics.scrape(), contentType }));
    const address = [metricsBindAddress, '--metrics-bind-address'] as const;
    servers.push(await serveHttp(...address, { '/metrics': scrape }, await metricsSecurity(options, served)));
  }
  if (healthBindAddress !== '0') {
    const live = [
      listing('leader', () => manager.staleLeadership()),
      listing('watches', () => manager.silentWatches()),
    ];
    const ready = listing('caches', () => manager.notReady().map(({ what, why }) => `${what}: ${why}`));
    const routes = {
      ...checkedPath('/healthz', live, log),
      ...checkedPath('/readyz', [ready], log),
    };
    servers.push(await serveHttp(healthBindAddress, '--health-bind-address', routes));
  }
  return servers;
}

/**
 * Returns how the metrics are kept from those who may not read them; nothing without `--metrics-secure`.
 * @throws OperatorError `InvalidInput` for a certificate that can't be used
 */
async function metricsSecurity(options: RunOptions, { transport, log }: Served): Promise<ServeOptions> {
  const { metricsSecure, metricsCertPath: folder, metricsCertName: cert, metricsCertKey: key } = options;
  if (!metricsSecure && folder !== undefined)
    throw new CliError('--metrics-cert-path needs --metrics-secure: add it');
  if (!metricsSecure) return {};
  // Not through the gate, at which a standby may not write, and an outage holds requests back.
  const review = new ScrapeReview({ api: new Api(transport), clock: systemClock, log });
  const certificate =
    folder === undefined
      ? await selfSignedCertificate(systemClock.now())
      : certificateIn({ folder, cert, key }, '--metrics-cert-path', log);
  return { certificate, refusal: review.refusal };
}

function endOnBugs(log: Logger): void {
  process.on('uncaughtException', (err: unknown, origin) => {
    log.error({ err, origin }, 'uncaught error, which is a bug, ending at once without releasing the lease');
    process.exit(BUG);
  });
}

/** Interval between looks at the CPU time. */
const POLL_MILLISECONDS = 5_000;
/** Maximum share of CPU time of an idle process. A settled controller needs a twentieth of this. */
const IDLE_SHARE = 0.02;
/** Minimum size of a growth of the heap that is worth a collection. */
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
