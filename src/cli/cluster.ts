import { OperatorError } from '../contract/error.js';
import { ApiError, classify, GRANT } from '../client/api-error.js';
import { ClusterClient, whileThrottled } from '../client/cluster.js';
import type { ServerVersion } from '../client/cluster.js';
import { Api } from '../client/api.js';
import { loadKubeconfig } from '../client/kubeconfig.js';
import type { ClusterAccess } from '../client/kubeconfig.js';
import { THROTTLED } from '../client/retry.js';
import { firstCause, ProxyFailure, UndiciTransport } from '../client/transport.js';
import type { SentRequest, Transport, TransportOptions } from '../client/transport.js';
import type { ClusterOptions, SharedOptions } from './options.js';
import { CliError, printError } from './output.js';
import { packageVersion } from './package.js';

/** The oldest supported Kubernetes, whose lists are consistent and cheap. */
export const OLDEST = '1.34';

const INSTALL_IT = '"reconstruct install --apply" and the options in use, or apply the CRD';

const REMEDIES: Readonly<Record<string, string>> = {
  Unreachable: 'check --kubeconfig and --context, and that the cluster is up',
  Unauthorized: 'log in again, or choose other credentials with --kubeconfig or --context',
  Forbidden: 'use credentials that have that right, such as those of cluster-admin, or ask an admin for it',
  KindNotServed: `install it with ${INSTALL_IT}`,
};

/**
 * Finds the cluster that the options name.
 * @throws CliError with exit code 2 when the kubeconfig or the context can't be used, 3 when there is no cluster
 */
export function clusterAccess(options: ClusterOptions): ClusterAccess {
  try {
    return loadKubeconfig(options);
  } catch (error) {
    throw asCliError(error);
  }
}

/** Returns what the options say of each request. @param sent takes the requests of `--verbose` */
export function transportOptions(
  { requestTimeout, verbose }: ClusterOptions,
  sent: (request: SentRequest) => void = printRequest,
): TransportOptions {
  return {
    ...(requestTimeout !== undefined && { answerTimeoutMilliseconds: requestTimeout }),
    ...(verbose && { sent }),
  };
}

function printRequest({ method, url, outcome, milliseconds }: SentRequest): void {
  const [word, why] = outcome instanceof Error ? ['failed', `: ${firstCause(outcome)}`] : [outcome, ''];
  printError(`${method} ${url} ${word} in ${milliseconds} ms${why}`);
}

interface Connection {
  readonly transport: Transport;
  readonly api: Api;
  readonly namespace: string;
}

/**
 * Lets a command work with the cluster that its options name.
 * @param use takes the namespace of the options, else that of the Pod in a cluster, of the context outside, else `default`
 * @param check rejects where the cluster can't be used
 * @throws CliError with exit code 2 for bad input, 3 when there is no cluster, or it is too old or refuses
 */
export async function withCluster(
  options: ClusterOptions & Pick<SharedOptions, 'namespace'>,
  use: (cluster: ClusterClient, connection: Connection) => Promise<void>,
  check: (cluster: ClusterClient, host: string) => Promise<unknown> = requireVersion,
): Promise<void> {
  const access = clusterAccess(options);
  const wire = new UndiciTransport(access, `reconstruct/${packageVersion()}`, transportOptions(options));
  const transport = whileThrottled(wire, THROTTLED.command);
  try {
    const cluster = new ClusterClient(transport);
    await check(cluster, transport.host);
    const { namespace = access.namespace } = options;
    await use(cluster, { transport, api: new Api(transport), namespace });
  } catch (error) {
    throw asCliError(error);
  } finally {
    await transport.close();
  }
}

/** @throws CliError with exit code 3 where nothing answers, or it is no Kubernetes API server, or one that is too old */
export async function requireVersion(cluster: Pick<ClusterClient, 'version'>, host: string): Promise<void> {
  const found = await versionOf(cluster, host).catch((error: unknown) => {
    // What is refused later says the rest.
    if (error instanceof OperatorError && error.reason === 'Forbidden') return undefined;
    throw error;
  });
  if (!found) return;
  const version = `${found.major}.${found.minor.split(/\D/, 1).join('')}`;
  if (version.localeCompare(OLDEST, 'en', { numeric: true }) >= 0) return;
  throw new CliError(
    `The API server at ${host} is of Kubernetes ${version}; ${OLDEST} or newer is needed: upgrade it, or choose another ` +
      'cluster with --context',
    3,
  );
}

/** @throws CliError with exit code 3 where nothing answers, or it is no Kubernetes API server */
export async function versionOf(
  cluster: Pick<ClusterClient, 'version'>,
  host: string,
): Promise<ServerVersion> {
  const version = await cluster.version().catch((error: unknown) => {
    throw error instanceof OperatorError && error.reason === 'Unreachable' ? noAnswer(error, host) : error;
  });
  if (version) return version;
  throw new CliError(
    `What answers at ${host} is no Kubernetes API server; check the server in the kubeconfig, and --context`,
    3,
  );
}

/** Codes of Node for certificates that can't be verified. @see https://nodejs.org/api/tls.html#x509-certificate-error-codes */
const UNTRUSTED =
  /^(?:ERR_TLS_CERT_\w+|CERT_\w+|\w*SELF_SIGNED_CERT\w*|UNABLE_TO_(?:GET_ISSUER_CERT|VERIFY_LEAF)\w*)$/;

/** Codes of OpenSSL for certificates and keys that can't be used at all. */
const UNUSABLE = /^ERR_OSSL_/;

function noAnswer({ cause, message }: OperatorError, host: string): CliError {
  if (cause instanceof ProxyFailure) return new CliError(`${cause.message}; ${ProxyFailure.remedy}`, 3);
  const why = cause === undefined ? message : firstCause(cause);
  const { code = '' } = (cause ?? {}) as { readonly code?: string };
  if (UNTRUSTED.test(code))
    return new CliError(
      // Node's own advice follows a semicolon.
      `The certificate of ${host} isn't trusted: ${why.replace(/;.*/s, '')}; check certificate-authority and server of the cluster in the kubeconfig`,
      3,
    );
  if (UNUSABLE.test(code))
    return new CliError(
      `The certificates of the kubeconfig can't be used: ${why}; check certificate-authority, client-certificate and client-key`,
      3,
    );
  return new CliError(`The cluster at ${host} doesn't answer: ${why}; ${REMEDIES.Unreachable ?? ''}`, 3);
}

/** Returns an error of one line, the problem and its remedy; of bad input, a line for each problem. */
export function asCliError(error: unknown): unknown {
  if (error instanceof ApiError) return asCliError(classify(error, 'The cluster refuses'));
  if (error instanceof CliError) return new CliError(error.lines.map(forPerson), error.exitCode);
  if (!(error instanceof OperatorError)) return error;
  const lines = error.message.split('\n');
  if (error.reason === 'InvalidInput') return new CliError(lines);
  const line = (lines[0] ?? '').replace(`; ${GRANT}`, '');
  // Where a credential plugin or its file is at fault, that is said with its own remedy.
  const hasOwn = error.reason === 'Unauthorized' && line.includes('; ');
  const remedy = remedyFor(line) ?? (hasOwn ? undefined : REMEDIES[error.reason]);
  return new CliError(remedy === undefined ? line : `${line.replace(/[.:]$/, '')}; ${remedy}`, 3);
}

const MISSING_RIGHT =
  /User "([^"]+)" cannot (\w+) resource "([^"]+)" in API group "([^"]*)"(?: in the namespace "([^"]+)"| at the cluster scope)/;

/** Returns a line with the remedy that a person has where a right is missing, in place of the operator's. */
export function forPerson(line: string): string {
  const bare = line.replace(`; ${GRANT}`, '');
  const remedy = remedyFor(bare);
  return remedy === undefined || bare.includes(remedy) ? bare : `${bare}; ${remedy}`;
}

function remedyFor(line: string): string | undefined {
  if (line.includes('cannot set blockOwnerDeletion'))
    return 'ask an admin for the right to update the subresource "finalizers" of its kind';
  const [, user, verb, resource = '', group, namespace] = MISSING_RIGHT.exec(line) ?? [];
  if (user === undefined) return undefined;
  const [plural = '', subresource] = resource.split('/');
  const type = group ? `${plural}.${group}` : plural;
  const right = [verb, type, ...(subresource ? ['--subresource', subresource] : [])];
  const where = namespace === undefined ? '--all-namespaces' : `--namespace ${namespace}`;
  return `ask an admin to give ${user} that right; "kubectl auth can-i ${right.join(' ')} ${where}" shows it`;
}

/** Returns the error for kinds that the cluster doesn't serve, with exit code 3. */
export function notInstalled(names: readonly string[]): CliError {
  const [are, them] = names.length === 1 ? ["isn't", 'it'] : ["aren't", 'them'];
  return new CliError(
    `${names.join(', ')} ${are} installed in the cluster; install ${them} with ${INSTALL_IT}`,
    3,
  );
}
