import { setTimeout as delay } from 'node:timers/promises';
import { messageOf, OperatorError } from '../contract/error.js';
import type { Transport } from '../engine/transport.js';
import type { ClusterAccess } from '../engine/kubeconfig.js';
import type { ClusterClient } from './cluster-client.js';
import { CliError } from './exit.js';
import { packageVersion } from './version.js';

/** The oldest supported Kubernetes, whose lists are consistent and cheap. */
export const OLDEST = '1.34';

const REMEDIES: Readonly<Record<string, string>> = {
  Unreachable: 'check --kubeconfig and --context, and that the cluster is up',
  Unauthorized: 'log in again, or choose other credentials with --kubeconfig or --context',
  Forbidden: 'use credentials that have that right, such as those of cluster-admin',
  KindNotServed: 'install it with "reconstruct install --apply" and the options in use, or apply its CRD',
};

export interface ClusterOptions {
  readonly kubeconfig?: string;
  readonly context?: string;
}

/**
 * Finds the cluster that the options name.
 * @throws CliError with exit code 2 when the kubeconfig or the context can't be used, 3 when there is no cluster
 */
export async function clusterAccess(options: ClusterOptions): Promise<ClusterAccess> {
  const { loadKubeconfig } = await import('../engine/kubeconfig.js');
  try {
    return loadKubeconfig(options);
  } catch (error) {
    throw asCliError(error);
  }
}

/** How a command reaches the cluster that its options name. */
export interface Connection {
  readonly transport: Transport;
  /** The Pod's in a cluster, the context's outside, else `default`. */
  readonly namespace: string;
}

/**
 * Lets a command work with the cluster that its options name.
 * @throws CliError with exit code 2 for bad input, 3 when there is no cluster, or it is too old or refuses
 */
export async function withCluster(
  options: ClusterOptions,
  use: (cluster: ClusterClient, connection: Connection) => Promise<void>,
): Promise<void> {
  const [{ ClusterClient }, { UndiciTransport }] = await Promise.all([
    import('./cluster-client.js'),
    import('../engine/transport.js'),
  ]);
  const access = await clusterAccess(options);
  const transport = retryingTransport(new UndiciTransport(access, `reconstruct/${packageVersion()}`));
  try {
    const cluster = new ClusterClient(transport);
    await requireVersion(cluster, transport.host);
    await use(cluster, { transport, namespace: access.namespace });
  } catch (error) {
    throw asCliError(error);
  } finally {
    await transport.close();
  }
}

/** How often a request is sent to a server that asks to come again later. */
const ATTEMPTS = 5;
const MAX_PAUSE_SECONDS = 5;

/** Sends requests again that a busy server has put off. */
export function retryingTransport(transport: Transport): Transport {
  return {
    host: transport.host,
    request: async (req) => {
      for (let attempt = 1; ; attempt++) {
        const answer = await transport.request(req);
        if (answer.status !== 429 || attempt === ATTEMPTS) return answer;
        await delay(1000 * Math.min(answer.retryAfterSeconds ?? 1, MAX_PAUSE_SECONDS));
      }
    },
    stream: (req) => transport.stream(req),
    close: () => transport.close(),
  };
}

/**
 * Checks what answers.
 * @throws CliError with exit code 3 where nothing does, or it is no Kubernetes API server, or one that is too old
 */
export async function requireVersion(cluster: Pick<ClusterClient, 'version'>, host: string): Promise<void> {
  let version: string | undefined;
  try {
    version = await cluster.version();
  } catch (error) {
    // What is refused later says the rest.
    if (error instanceof OperatorError && error.reason === 'Forbidden') return;
    if (error instanceof OperatorError && error.reason === 'Unreachable') throw noAnswer(error, host);
    throw error;
  }
  if (version === undefined) {
    throw new CliError(
      `What answers at ${host} is no Kubernetes API server; check the server in the kubeconfig, and --context`,
      3,
    );
  }
  const [found, needed] = [version, OLDEST].map((text) => text.split('.').map(Number));
  const [[major = 0, minor = 0], [atLeast = 0, andMinor = 0]] = [found ?? [], needed ?? []];
  if (major > atLeast || (major === atLeast && minor >= andMinor)) return;
  throw new CliError(
    `The API server at ${host} is of Kubernetes ${version}; ${OLDEST} or newer is needed: upgrade it, or choose another ` +
      'cluster with --context',
    3,
  );
}

/** Codes of Node for certificates that can't be verified. @see https://nodejs.org/api/tls.html#x509-certificate-error-codes */
const UNTRUSTED =
  /^(?:ERR_TLS_CERT_\w+|CERT_\w+|\w*SELF_SIGNED_CERT\w*|UNABLE_TO_(?:GET_ISSUER_CERT|VERIFY_LEAF)\w*)$/;

function noAnswer({ cause, message }: OperatorError, host: string): CliError {
  const why = cause === undefined ? message : reasonOf(cause);
  if (UNTRUSTED.test((cause as { code?: string } | undefined)?.code ?? ''))
    return new CliError(
      `The certificate of ${host} isn't trusted: ${why}; check certificate-authority and server of the cluster in the kubeconfig`,
      3,
    );
  return new CliError(`The cluster at ${host} doesn't answer: ${why}; ${REMEDIES.Unreachable ?? ''}`, 3);
}

/** Returns the reason; of several addresses that were tried in vain, that of the first. */
function reasonOf(cause: unknown): string {
  if (cause instanceof AggregateError && cause.errors.length > 0) return messageOf(cause.errors[0]);
  return messageOf(cause);
}

/** Returns an error of one line, the problem and its remedy; of bad input, a line for each problem. */
export function asCliError(error: unknown): unknown {
  if (!(error instanceof OperatorError)) return error;
  const lines = error.message.split('\n');
  if (error.reason === 'InvalidInput') return new CliError(lines, 2);
  const [line = ''] = lines;
  const remedy = REMEDIES[error.reason];
  return new CliError(remedy === undefined ? line : `${line.replace(/[.:]$/, '')}; ${remedy}`, 3);
}

/** Returns the error for kinds that the cluster doesn't serve, with exit code 3. */
export function notInstalled(names: readonly string[]): CliError {
  const isOne = names.length === 1;
  return new CliError(
    `${names.join(', ')} ${isOne ? "isn't" : "aren't"} installed in the cluster; install ${isOne ? 'it' : 'them'} with ` +
      `"reconstruct install --apply" and the options in use, or apply the CRD`,
    3,
  );
}
