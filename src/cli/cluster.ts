import { setTimeout as delay } from 'node:timers/promises';
import { messageOf, OperatorError } from '../contract/error.js';
import { groupOf, objectKey } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import type { ResourceType } from '../contract/resource.js';
import { ApiError, classify, GRANT } from '../client/api-error.js';
import { Api } from '../client/api.js';
import { loadKubeconfig } from '../client/kubeconfig.js';
import type { ClusterAccess } from '../client/kubeconfig.js';
import { ProxyFailure, UndiciTransport } from '../client/transport.js';
import type { SentRequest, Transport, TransportOptions } from '../client/transport.js';
import { isPartial } from '../install/cluster.js';
import type { Applied, ApplyOptions, Cluster, ListScope, ServedTypes } from '../install/cluster.js';
import type { ClusterOptions } from './options.js';
import { CliError } from './exit.js';
import { printError } from './output.js';
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

/**
 * Lets a command work with the cluster that its options name.
 * @param use takes the namespace of the Pod in a cluster, of the context outside, else `default`
 * @param check rejects where the cluster can't be used
 * @throws CliError with exit code 2 for bad input, 3 when there is no cluster, or it is too old or refuses
 */
export async function withCluster(
  options: ClusterOptions,
  use: (
    cluster: ClusterClient,
    connection: { readonly transport: Transport; readonly namespace: string },
  ) => Promise<void>,
  check: (cluster: ClusterClient, host: string) => Promise<unknown> = requireVersion,
): Promise<void> {
  const access = clusterAccess(options);
  const transport = retryingTransport(
    new UndiciTransport(access, `reconstruct/${packageVersion()}`, transportOptions(options)),
  );
  try {
    const cluster = new ClusterClient(transport);
    await check(cluster, transport.host);
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

/** Returns the first reason where several addresses were tried. */
function firstCause(error: unknown): string {
  return messageOf(error instanceof AggregateError ? (error.errors[0] ?? error) : error);
}

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
  if (error.reason === 'InvalidInput') return new CliError(lines, 2);
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

const POLL_MILLISECONDS = 200;
const LONGEST_WAIT_SECONDS = 120;
/** How often an object is deleted that others write at the same time. */
const DELETE_TRIES = 10;

interface Discovered {
  readonly name: string;
  readonly kind: string;
  readonly namespaced: boolean;
  readonly verbs: readonly string[];
}

/** Answer of `/version`, as far as it is read. */
export interface ServerVersion {
  readonly major: string;
  readonly minor: string;
  /** Version such as `v1.36.3`. */
  readonly gitVersion?: string;
}

interface GroupVersion {
  readonly groupVersion: string;
}

/** The engine's API client for commands that do something once: a missing object or type is no error, any other is classified. */
export class ClusterClient implements Cluster {
  private readonly api: Api;

  constructor(transport: Transport) {
    this.api = new Api(transport);
  }

  async find(type: ResourceType, key: string): Promise<AnyObject | undefined> {
    return this.whereServed(type, `Get ${type.kind} ${key}`, () => this.api.get(type, key));
  }

  async list(type: ResourceType, scope: ListScope = {}): Promise<readonly AnyObject[]> {
    const list = (): Promise<AnyObject[]> => this.api.listAll({ type, ...scope });
    return (await this.whereServed(type, `List ${type.plural}`, list)) ?? [];
  }

  async apply(type: ResourceType, object: AnyObject, options: ApplyOptions): Promise<Applied> {
    const { namespace, name } = object.metadata;
    return this.api.apply(type, object, options).catch((error: unknown) => {
      throw classify(error, `Apply ${type.kind} ${objectKey(namespace, name)}`);
    });
  }

  /** A status that is written meanwhile is no reason to keep it: it is the same object. */
  async delete(
    type: ResourceType,
    { metadata: { namespace, name, uid } }: AnyObject,
    propagation: 'Background' | 'Foreground',
    dryRun = false,
  ): Promise<void> {
    const key = objectKey(namespace, name);
    for (let attempt = 1; ; attempt++) {
      const seen = await this.find(type, key);
      if (!seen || seen.metadata.uid !== uid) return;
      try {
        await unlessMissing(`Delete ${type.kind} ${key}`, this.api.delete(type, seen, propagation, dryRun));
        return;
      } catch (error) {
        if (!(error instanceof OperatorError)) throw error;
        // A webhook without dry runs can't be asked.
        if (dryRun && error.cause instanceof ApiError && error.cause.dryRunUnsupported) return;
        if (error.reason !== 'Conflict' || attempt === DELETE_TRIES) throw error;
      }
    }
  }

  async namespacedTypes(): Promise<ServedTypes> {
    type Groups = { readonly preferredVersion: GroupVersion; readonly versions: readonly GroupVersion[] }[];
    const { groups = [] } = (await this.read<{ readonly groups: Groups }>('/apis')) ?? {};
    // The preferred version comes first.
    const all = groups.flatMap(({ versions, preferredVersion }) => [preferredVersion, ...versions]);
    const types = new Map<string, ResourceType>();
    const unseen: string[] = [];
    for (const apiVersion of new Set(['v1', ...all.map(({ groupVersion }) => groupVersion)])) {
      const path = apiVersion === 'v1' ? '/api/v1' : `/apis/${apiVersion}`;
      try {
        const { resources = [] } = (await this.read<{ resources: readonly Discovered[] }>(path)) ?? {};
        for (const { name: plural, kind, namespaced, verbs } of resources) {
          const id = `${plural}.${groupOf(apiVersion)}`;
          const isWanted = namespaced && verbs.includes('list') && verbs.includes('delete');
          if (isWanted && !plural.includes('/') && !types.has(id))
            types.set(id, { apiVersion, kind, plural, namespaced });
        }
      } catch (error) {
        if (!isPartial(error)) throw error;
        unseen.push(apiVersion);
      }
    }
    return { types: [...types.values()], unseen };
  }

  /** Returns undefined where what answers is no API server. */
  async version(): Promise<ServerVersion | undefined> {
    const found = await this.read<Partial<ServerVersion>>('/version');
    const isVersion = typeof found?.major === 'string' && typeof found.minor === 'string';
    return isVersion ? (found as ServerVersion) : undefined;
  }

  async until(pending: () => Promise<string>): Promise<void> {
    const deadline = performance.now() + 1000 * LONGEST_WAIT_SECONDS;
    for (let what = await pending(); what !== ''; what = await pending()) {
      if (performance.now() > deadline)
        throw new OperatorError({
          reason: 'Timeout',
          message: `Waited for ${LONGEST_WAIT_SECONDS} s in vain until ${what}: find out what holds it, and give the command again`,
        });
      await delay(POLL_MILLISECONDS);
    }
  }

  private async read<T>(path: string): Promise<T | undefined> {
    return unlessMissing(`Get ${path}`, this.api.read<T>(path));
  }

  /** A user without a right on a type is refused before it is looked for, so that has to be asked apart. */
  private async whereServed<T>(
    type: ResourceType,
    what: string,
    ask: () => Promise<T>,
  ): Promise<T | undefined> {
    const answer = ask().catch(async (error: unknown) => {
      if (!(error instanceof ApiError) || error.code !== 403) throw error;
      // Not known where that may not be asked either.
      const isServed = await this.api.serves(type).catch((again: unknown) => {
        if (again instanceof ApiError) return true;
        throw again;
      });
      if (isServed) throw error;
      return undefined;
    });
    return unlessMissing(what, answer);
  }
}

/** @throws what `classify` makes of an error; a 404 is none */
async function unlessMissing<T>(what: string, asked: Promise<T>): Promise<T | undefined> {
  return asked.catch((error: unknown) => {
    if (error instanceof ApiError && error.code === 404) return undefined;
    throw classify(error, what);
  });
}
