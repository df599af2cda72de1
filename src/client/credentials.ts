import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import type { ConnectionOptions } from 'node:tls';
import { messageOf, OperatorError } from '../contract/error.js';
import { programEnded } from '../telemetry/program.js';
import { hasCertificate } from './kubeconfig.js';
import type { ClusterAccess, KubeconfigExec, KubeconfigUser } from './kubeconfig.js';
import { CREDENTIALS } from './retry.js';

/** Material for `tls.connect`. */
export type TlsMaterial = Pick<
  ConnectionOptions,
  'ca' | 'cert' | 'key' | 'servername' | 'rejectUnauthorized' | 'allowPartialTrustChain'
>;

/** Credentials that a request carries. */
export interface Credentials {
  readonly tls: TlsMaterial;
  /** A list is sent as several headers of one name. */
  readonly headers: Readonly<Record<string, string | string[]>>;
}

/** Returns a text that a header can have. @throws OperatorError without the text, for any other */
function sendable(text: string, what: string): string {
  if (!/[^\t\x20-\x7e\x80-\xff]/.test(text)) return text;
  throw unusable(`${what} has a line break, or a character that can't be sent; write it in one line`);
}

/** Source of a transport's credentials. */
export interface CredentialSource {
  /** @throws where there are none; the signal ends what it waits for */
  read(signal: AbortSignal): Promise<Credentials>;
  /** The API server has answered 401: what was remembered isn't given again. */
  forget(): void;
}

/** Answer of a credential plugin. */
interface Issued {
  readonly token?: string;
  readonly clientCertificateData?: string;
  readonly clientKeyData?: string;
  readonly expirationTimestamp?: string;
}

/**
 * Credentials of a kubeconfig's user, by client-go's rules: data win over files, a token's file over the token, and a
 * static credential over a credential plugin. Files are read each time. What a plugin has issued is remembered until it
 * expires or is forgotten.
 *
 * **Caveats.** A plugin has no standard input. What it writes to standard error is passed on line by line.
 */
export class UserCredentials implements CredentialSource {
  private issued: Issued | undefined;
  private fileToken: string | undefined;

  constructor(
    private readonly access: ClusterAccess,
    private readonly say = (line: string): void => void process.stderr.write(`${line}\n`),
    private readonly pluginMilliseconds: number = CREDENTIALS.pluginTimeout,
  ) {}

  forget(): void {
    this.issued = undefined;
  }

  async read(signal: AbortSignal): Promise<Credentials> {
    const { cluster, clusterAt, user, userAt } = this.access;
    const headers = impersonation(user, userAt);
    // No secret goes over a connection that isn't encrypted.
    if (!cluster.server.startsWith('https:')) return { tls: {}, headers };
    const isStatic = user.token || user.tokenFile || user.username || user.password || hasCertificate(user);
    const issued = user.exec && !isStatic ? await this.issuedBy(user.exec, signal) : {};
    const tls = {
      ca: pem(cluster, clusterAt, 'certificate-authority'),
      cert: pem(user, userAt, 'client-certificate') ?? issued.clientCertificateData,
      key: pem(user, userAt, 'client-key') ?? issued.clientKeyData,
      servername: cluster['tls-server-name'] || undefined,
      rejectUnauthorized: cluster['insecure-skip-tls-verify'] ? false : undefined,
      // As in Go, each certificate of the bundle is trusted, and not only a root.
      allowPartialTrustChain: true,
    };
    const token = this.token() ?? issued.token;
    if (token) headers.authorization = `Bearer ${token}`;
    else if (user.username || user.password)
      headers.authorization = `Basic ${Buffer.from(`${user.username ?? ''}:${user.password ?? ''}`).toString('base64')}`;
    return {
      tls: Object.fromEntries(Object.entries(tls).filter(([, value]) => value !== undefined)),
      headers,
    };
  }

  /** The token that was last read from the file, which wins over the one beside it. */
  private token(): string | undefined {
    const { user, userAt } = this.access;
    if (!user.tokenFile) return user.token ? sendable(user.token, `${userAt}: token`) : undefined;
    try {
      const read = readFileSync(user.tokenFile, 'utf8').trim();
      if (read === '') throw new Error('it is empty');
      this.fileToken = sendable(read, 'it');
    } catch (error) {
      if (!this.fileToken && !user.token)
        throw unusable(`${userAt}: tokenFile ${user.tokenFile} can't be used: ${messageOf(error)}`);
    }
    return this.fileToken ?? user.token;
  }

  private async issuedBy(exec: KubeconfigExec, signal: AbortSignal): Promise<Issued> {
    // Where nothing says when it expires, it's good until it is refused.
    const isGood = this.issued && !(Date.parse(this.issued.expirationTimestamp ?? '') <= Date.now());
    this.issued = isGood ? this.issued : issuedIn(await this.answer(exec, signal), exec, this.access.userAt);
    return this.issued ?? {};
  }

  /** Reads the output of the plugin. */
  private async answer(exec: KubeconfigExec, signal: AbortSignal): Promise<string> {
    const what = `${this.access.userAt}: credential plugin ${exec.command}`;
    const env = { ...process.env };
    for (const { name, value } of exec.env ?? []) env[name] = value;
    const child = spawn(exec.command, exec.args ?? [], {
      env: { ...env, KUBERNETES_EXEC_INFO: this.execInfo(exec) },
      stdio: ['ignore', 'pipe', 'pipe'],
      signal,
    });
    let [stdout, lastLine] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
    createInterface({ input: child.stderr }).on('line', (line) => {
      this.say((lastLine = line));
    });
    const { code, signal: killed } = await programEnded(child, {
      ...{ what, say: this.say, limitMilliseconds: this.pluginMilliseconds },
      remedy: `run ${exec.command} by hand to see what it waits for`,
    }).catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw unusable(messageOf(error));
      const hint = exec.installHint?.replace(/\s+/g, ' ').trim() || 'install it, or correct its path';
      throw unusable(`${what}: not found; ${hint}`);
    });
    if (code === 0) return stdout;
    throw unusable(`${what} ended with ${killed ?? `exit code ${code ?? '?'}`}: ${lastLine || 'no output'}`);
  }

  /** @see https://kubernetes.io/docs/reference/config-api/client-authentication.v1/ */
  private execInfo({ apiVersion, provideClusterInfo }: KubeconfigExec): string {
    const { cluster, clusterAt } = this.access;
    const { server, extensions } = cluster;
    const passedOn = [
      'tls-server-name',
      'insecure-skip-tls-verify',
      'proxy-url',
      'disable-compression',
    ] as const;
    const ca = pem(cluster, clusterAt, 'certificate-authority')?.toString('base64');
    const config = extensions?.find(({ name }) => name === 'client.authentication.k8s.io/exec')?.extension;
    const info = {
      server,
      ...Object.fromEntries(passedOn.filter((name) => cluster[name]).map((name) => [name, cluster[name]])),
      ...(ca && { 'certificate-authority-data': ca }),
      ...(config !== undefined && { config }),
    };
    const spec = { ...(provideClusterInfo && { cluster: info }), interactive: false };
    return JSON.stringify({ apiVersion, kind: 'ExecCredential', spec });
  }
}

/** @see https://kubernetes.io/docs/reference/access-authn-authz/user-impersonation/ */
function impersonation(user: KubeconfigUser, userAt: string): Record<string, string | string[]> {
  if (!user.as) return {};
  // Header values are bytes.
  const bytes = (text: string): string =>
    sendable(Buffer.from(text).toString('latin1'), `${userAt}: a name to act as`);
  const extra = Object.entries(user['as-user-extra'] ?? {}).map(([key, values]) => {
    const escaped = encodeURIComponent(key).replace(/[()]/g, (one) => `%${one.charCodeAt(0).toString(16)}`);
    return [`impersonate-extra-${escaped.toLowerCase()}`, values.map(bytes)] as const;
  });
  return {
    'impersonate-user': bytes(user.as),
    ...(user['as-uid'] && { 'impersonate-uid': bytes(user['as-uid']) }),
    ...(user['as-groups']?.length && { 'impersonate-group': user['as-groups'].map(bytes) }),
    ...Object.fromEntries(extra),
  };
}

/** Data win over the file beside them. */
function pem(fields: object, at: string, name: string): Buffer | undefined {
  const { [`${name}-data`]: data, [name]: file } = fields as Readonly<Record<string, string | undefined>>;
  if (data) return Buffer.from(data, 'base64');
  try {
    return file ? readFileSync(file) : undefined;
  } catch (error) {
    const message = `${at}: ${name} ${file ?? ''} can't be read: ${messageOf(error)}; correct the path`;
    throw new OperatorError({ reason: 'InvalidInput', message, retry: 'backoff' });
  }
}

function issuedIn(answer: string, { apiVersion, command }: KubeconfigExec, userAt: string): Issued {
  const what = `${userAt}: credential plugin ${command}`;
  const credential = parsed(answer);
  if (credential?.kind !== 'ExecCredential' || credential.apiVersion !== apiVersion)
    throw unusable(`${what}: its output is no ExecCredential of ${apiVersion}`);
  const { token, clientCertificateData: cert, clientKeyData: key } = credential.status ?? {};
  if (!credential.status || Boolean(cert) !== Boolean(key) || (!token && !cert))
    throw unusable(`${what} has issued neither a token nor a client certificate with its key`);
  if (token) sendable(token, `${what}: its token`);
  return credential.status;
}

function parsed(answer: string): { apiVersion?: string; kind?: string; status?: Issued } | undefined {
  try {
    return (JSON.parse(answer) as object | null) ?? undefined;
  } catch {
    return undefined;
  }
}

function unusable(message: string): OperatorError {
  return new OperatorError({ reason: 'Unauthorized', message, retry: 'backoff' });
}
