import { existsSync, readFileSync } from 'node:fs';
import { BlockList, isIP } from 'node:net';
import { delimiter, dirname, join, resolve, sep } from 'node:path';
import { messageOf, OperatorError } from '../contract/error.js';
import { suggest } from '../values/suggest.js';
import { decodeText, readYaml } from '../values/yaml.js';
import { isMap } from '../values/json.js';

/** The way to one API server: a context of the kubeconfigs, or the service account of a Pod. */
export interface ClusterAccess {
  /** Name of the context. */
  readonly context: string;
  readonly cluster: KubeconfigCluster;
  readonly user: KubeconfigUser;
  /** File and entry, for messages. */
  readonly clusterAt: string;
  readonly userAt: string;
  /** Namespace of the context, else of the Pod that this process runs in, else `default`; as kubectl has it. */
  readonly namespace: string;
  /** URL of the HTTP or HTTPS proxy. @default - none */
  readonly proxy?: string;
  /** Whether this process runs in a Pod, be it of this cluster or of another. */
  readonly inPod: boolean;
}

export interface KubeconfigOptions {
  /** Path of the one kubeconfig. @default - those of $KUBECONFIG, else ~/.kube/config, else the Pod's service account */
  readonly kubeconfig?: string;
  /** @default - the current one */
  readonly context?: string;
  /** User to impersonate, in place of whom the kubeconfig says, with groups and all. @default - as it says */
  readonly as?: string;
  /** Groups of the user to impersonate. @default - none of a given user, else as the kubeconfig says */
  readonly asGroup?: readonly string[];
  /** @default - that of this process */
  readonly env?: NodeJS.ProcessEnv;
  /** Folder where a Pod has its service account. @default - where Kubernetes mounts it */
  readonly mounted?: string;
}

type Fields = Readonly<Record<string, unknown>>;

interface Entry {
  /** File, kind and name, for messages. */
  readonly at: string;
  readonly fields: Fields;
}

/** Several kubeconfigs as one. */
interface Merged extends Readonly<Record<'cluster' | 'user' | 'context', Map<string, Entry>>> {
  readonly files: string;
  readonly current: string | undefined;
}

type Found = Omit<ClusterAccess, 'inPod' | 'namespace' | 'proxy'> & { readonly namespace?: string };

const MOUNTED = '/var/run/secrets/kubernetes.io/serviceaccount';

/** Form of a field, its check, and the type of what fits. */
type Shape<T> = readonly [what: string, fits: (value: unknown) => boolean, type?: T];
type Shapes = Readonly<Record<string, Shape<unknown>>>;
type Read<S extends Shapes> = { readonly [Name in keyof S]?: S[Name] extends Shape<infer T> ? T : never };
type Texts = readonly string[];
type Pairs = readonly { readonly name: string; readonly value: string }[];

const isText = (value: unknown): value is string => typeof value === 'string';
const isTexts = (value: unknown): boolean => Array.isArray(value) && value.every(isText);
const isPair = (value: Fields | null): boolean => isText(value?.name) && isText(value.value ?? '');
const TEXT: Shape<string> = ["isn't text: put it in quotes", isText];
/** Path, which counts from the folder of the kubeconfig. */
const PATH: Shape<string> = [...TEXT];
const BASE64: Shape<string> = ["isn't base64", (value) => isText(value) && isBase64(value)];
const SWITCH: Shape<boolean> = [
  'is neither true nor false: remove the quotes',
  (value) => typeof value === 'boolean',
];
const TEXTS: Shape<Texts> = ["isn't a list of texts", isTexts];
const LISTS: Shape<Readonly<Record<string, Texts>>> = [
  "isn't a map of lists of texts",
  (value) => isMap(value) && Object.values(value).every(isTexts),
];
const PAIRS: Shape<Pairs> = [
  "isn't a list of names and values",
  (value) => Array.isArray(value) && value.every(isPair),
];
const PROVIDER: Shape<{ readonly name?: string }> = ["isn't a map", isMap];
const EXTENSIONS: Shape<readonly { readonly name: string; readonly extension: unknown }[]> = [
  "isn't a list",
  Array.isArray,
];

function each<T, Name extends string>(shape: Shape<T>, ...names: Name[]): Record<Name, Shape<T>> {
  return Object.fromEntries(names.map((name) => [name, shape])) as Record<Name, Shape<T>>;
}

const EXEC_SHAPES = {
  ...each(TEXT, 'apiVersion', 'command', 'installHint', 'interactiveMode'),
  ...{ args: TEXTS, provideClusterInfo: SWITCH, env: PAIRS },
};

/**
 * Fields that are read of each entry. As in client-go, no value is read as if it were of another type, for the text "false"
 * isn't false; and any other field is left alone, whatever it holds.
 */
const SHAPES = {
  context: each(TEXT, 'cluster', 'user', 'namespace'),
  cluster: {
    ...each(TEXT, 'server', 'tls-server-name', 'proxy-url'),
    ...each(SWITCH, 'insecure-skip-tls-verify', 'disable-compression'),
    ...{ 'certificate-authority': PATH, 'certificate-authority-data': BASE64, extensions: EXTENSIONS },
  },
  user: {
    ...each(TEXT, 'token', 'username', 'password', 'as', 'as-uid'),
    ...each(PATH, 'client-certificate', 'client-key', 'tokenFile'),
    ...each(BASE64, 'client-certificate-data', 'client-key-data'),
    ...{ 'as-groups': TEXTS, 'as-user-extra': LISTS, 'auth-provider': PROVIDER },
    exec: ["isn't a map", isMap] as Shape<KubeconfigExec>,
  },
};

/** `cluster` of a kubeconfig, as far as it is used; paths are absolute. */
export interface KubeconfigCluster extends Read<typeof SHAPES.cluster> {
  readonly server: string;
}

/** `user` of a kubeconfig; paths are absolute. */
export type KubeconfigUser = Read<typeof SHAPES.user>;

/** @see https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins */
export interface KubeconfigExec extends Read<typeof EXEC_SHAPES> {
  readonly apiVersion: string;
  readonly command: string;
}

const EXEC_VERSIONS = ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1'];

/**
 * Finds the way to the API server by client-go's rules.
 *
 * @throws OperatorError `InvalidInput` with file, entry and remedy for what can't be read, is contradictory or isn't
 * supported; `NoCluster` where nothing leads to a cluster
 * @see https://kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig/
 */
export function loadKubeconfig(options: KubeconfigOptions = {}): ClusterAccess {
  const { context, kubeconfig, env = process.env, mounted = MOUNTED } = options;
  const merged = merge(filesOf(kubeconfig, env));
  const names = [...merged.context.keys()];
  if (context !== undefined && !names.includes(context)) {
    const near = suggest(context, names);
    const known = names.join(', ') || 'empty';
    const remedy = near === undefined ? `the list of contexts is ${known}` : `did you mean ${near}?`;
    throw invalid(`--context ${context}: there is no such context; ${remedy}`);
  }
  if (names.length === 0 && (kubeconfig !== undefined || merged.cluster.size > 0))
    throw invalid(`${merged.files}: names no cluster; it isn't a kubeconfig, or has no current context`);
  const found = names.length > 0 ? chosen(context ?? merged.current, merged) : serviceAccount(env, mounted);
  const user = impersonating(found.user, options);
  const namespaceFile = join(mounted, 'namespace');
  const podNamespace = existsSync(namespaceFile) ? readFileSync(namespaceFile, 'utf8').trim() : '';
  const proxy = proxyOf(found, env);
  return {
    ...found,
    user,
    namespace: found.namespace?.trim() || podNamespace || 'default',
    // Where the token isn't mounted, there is the address of the API server still.
    inPod: existsSync(join(mounted, 'token')) || Boolean(env.KUBERNETES_SERVICE_HOST),
    ...(proxy && { proxy }),
  };
}

/** Returns the names of all contexts. @throws OperatorError `InvalidInput` as `loadKubeconfig` */
export function contextsOf({ kubeconfig, env = process.env }: KubeconfigOptions = {}): string[] {
  return [...merge(filesOf(kubeconfig, env)).context.keys()];
}

function impersonating(user: KubeconfigUser, { as, asGroup }: KubeconfigOptions): KubeconfigUser {
  if (as === undefined && !asGroup) return user;
  if (as === undefined && !user.as) throw invalid('--as-group needs a user to impersonate; add --as USER');
  if (as === undefined) return { ...user, 'as-groups': asGroup ?? [] };
  const { 'as-uid': uid, 'as-groups': groups, 'as-user-extra': extra, ...own } = user;
  return { ...own, as, ...(asGroup && { 'as-groups': asGroup }) };
}

function filesOf(kubeconfig: string | undefined, env: NodeJS.ProcessEnv): string[] {
  if (kubeconfig !== undefined) {
    if (existsSync(kubeconfig)) return [kubeconfig];
    throw invalid(`${kubeconfig}: there is no such file; check the path given to --kubeconfig`);
  }
  const named = [...new Set(env.KUBECONFIG?.split(delimiter).filter((file) => file !== ''))];
  // A user of a container may have no home.
  const home = env.HOME ?? env.USERPROFILE;
  const usual = home ? [join(home, '.kube', 'config')] : [];
  const files = named.length > 0 ? named : usual;
  const there = files.filter((file) => existsSync(file));
  if (there.length > 0 || named.length === 0) return there;
  throw invalid(
    `${env.KUBECONFIG ?? ''} (from $KUBECONFIG): there is no such file; correct or unset KUBECONFIG`,
  );
}

/** Takes each entry, and the current context, from the first file that has it. */
function merge(files: readonly string[]): Merged {
  const entries = {
    cluster: new Map<string, Entry>(),
    user: new Map<string, Entry>(),
    context: new Map<string, Entry>(),
  };
  let current: string | undefined;
  for (const file of files) {
    try {
      const content = readYaml(decodeText(readFileSync(file))) ?? {};
      if (!isMap(content)) throw new Error("it isn't a map of clusters, users and contexts");
      current ||= content['current-context'] as string | undefined;
      for (const kind of ['cluster', 'user', 'context'] as const) {
        const known = entries[kind];
        const listed = content[`${kind}s`] ?? [];
        if (!Array.isArray(listed)) throw new Error(`${kind}s isn't a list`);
        for (const entry of listed as (Fields | null)[]) {
          const name = String(entry?.name);
          const at = `${kind} "${name}"`;
          const fields = checked((entry?.[kind] ?? {}) as Fields, SHAPES[kind], at, dirname(file));
          if (!known.has(name)) known.set(name, { at: `${file}: ${kind} "${name}"`, fields });
        }
      }
    } catch (error) {
      throw invalid(`${file}: can't be read as a kubeconfig: ${messageOf(error)}`);
    }
  }
  return { ...entries, files: files.join(delimiter), current };
}

/** Paths count from the folder of the kubeconfig; a command without a slash is looked for on the PATH. */
function checked(fields: Fields, shapes: Shapes, at: string, folder: string): Fields {
  const read: Record<string, unknown> = {};
  for (const [name, shape] of Object.entries(shapes)) {
    const value = fields[name] ?? undefined;
    if (value === undefined) continue;
    const [wrong, fits] = shape;
    if (!fits(value)) throw new Error(`${at}: ${name} ${wrong}`);
    const isPath = shape === PATH || (name === 'command' && (value as string).includes(sep));
    read[name] = isPath && value !== '' ? resolve(folder, value as string) : value;
  }
  if (read.exec) read.exec = checked(read.exec as Fields, EXEC_SHAPES, `${at}: exec`, folder);
  return read;
}

function isBase64(text: string): boolean {
  const bare = text.replaceAll(/[\s=]/g, '');
  return Buffer.from(bare, 'base64').toString('base64').replaceAll('=', '') === bare;
}

function chosen(name: string | undefined, merged: Merged): Found {
  const lost = (wrong: string): OperatorError =>
    invalid(`${merged.files}: ${wrong}; choose one with --context: ${[...merged.context.keys()].join(', ')}`);
  if (!name) throw lost('has no current context');
  const context = merged.context.get(name);
  if (!context) throw lost(`its current context ${name} isn't there`);
  const names = context.fields as Read<typeof SHAPES.context>;
  const cluster = merged.cluster.get(names.cluster ?? '');
  if (!cluster) throw lost(`its context ${name} names a cluster that isn't there`);
  const user = names.user ? merged.user.get(names.user) : { at: context.at, fields: {} };
  if (!user) throw lost(`its context ${name} names a user that isn't there`);
  const found = {
    ...{ context: name, clusterAt: cluster.at, userAt: user.at },
    cluster: withScheme(cluster.fields, user.fields),
    user: user.fields as KubeconfigUser,
    ...(names.namespace && { namespace: names.namespace }),
  };
  const wrong = wrongIn(found.cluster);
  if (wrong) throw invalid(`${cluster.at}: ${wrong}`);
  const wrongUser = wrongInUser(found.user);
  if (wrongUser) throw invalid(`${user.at}: ${wrongUser}`);
  return found;
}

/**
 * Completes the address of a server: without a scheme it is a host, which is asked by HTTPS where the cluster or the user has
 * what only HTTPS needs.
 * @see https://github.com/kubernetes/client-go/blob/v0.36.3/rest/url_utils.go
 */
function withScheme(cluster: Partial<KubeconfigCluster>, user: KubeconfigUser): KubeconfigCluster {
  const { server = '', 'certificate-authority': file, 'certificate-authority-data': data } = cluster;
  const [, scheme, rest] = /^(https?)(:\/\/.*)$/i.exec(server) ?? [];
  if (scheme !== undefined) return { ...cluster, server: scheme.toLowerCase() + (rest ?? '') };
  if (!/^[^/]+\/?$/.test(server)) return { ...cluster, server };
  const isSecure = file || data || cluster['insecure-skip-tls-verify'] || hasCertificate(user);
  return { ...cluster, server: `http${isSecure ? 's' : ''}://${server}` };
}

function wrongIn(cluster: KubeconfigCluster): string | undefined {
  const { server, 'certificate-authority': file, 'certificate-authority-data': data } = cluster;
  if (!server) return 'has no server';
  if (!isHttp(server))
    return `server ${JSON.stringify(withoutLogin(server))} is no URL; write https://HOST:PORT`;
  if (cluster['insecure-skip-tls-verify'] && (file || data))
    return 'has both insecure-skip-tls-verify and a certificate-authority; remove one of them';
  return undefined;
}

function wrongInUser(user: KubeconfigUser): string | undefined {
  const { 'auth-provider': provider, exec } = user;
  if (provider)
    return `auth-provider ${JSON.stringify(provider.name)} isn't supported; use exec with a credential plugin (for OIDC, kubelogin), or a token`;
  if ((user.token || user.tokenFile) && (user.username || user.password))
    return 'has both a token and a username with password; remove one of them';
  if (hasCertificate(user) !== Boolean(user['client-key'] || user['client-key-data']))
    return 'has a client certificate without its key, or a key without its certificate; add the other one';
  if (!user.as && (user['as-uid'] || user['as-groups']?.length || user['as-user-extra']))
    return 'as-uid, as-groups and as-user-extra need a user to impersonate; add "as"';
  if (exec && !exec.command) return "exec has no command; write the credential plugin's";
  if (exec && !EXEC_VERSIONS.includes(exec.apiVersion))
    return `exec has apiVersion ${exec.apiVersion}; use one of ${EXEC_VERSIONS.join(', ')}`;
  if (exec?.interactiveMode === 'Always')
    return 'exec has interactiveMode Always, but plugins have no terminal here; log in before, and use IfAvailable';
  return undefined;
}

/** Reports whether a user has a client certificate beside what a credential plugin issues. */
export function hasCertificate(user: KubeconfigUser): boolean {
  return Boolean(user['client-certificate'] || user['client-certificate-data']);
}

function serviceAccount(env: NodeJS.ProcessEnv, mounted: string): Found {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = env;
  const tokenFile = join(mounted, 'token');
  if (!host || !port || !existsSync(tokenFile)) {
    throw new OperatorError({
      reason: 'NoCluster',
      message: 'No cluster is configured: give --kubeconfig FILE, set KUBECONFIG, or run inside a cluster',
    });
  }
  const server = `https://${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
  const at = `${mounted}: service account`;
  return {
    ...{ context: 'in-cluster', clusterAt: at, userAt: at, user: { tokenFile } },
    cluster: { server, 'certificate-authority': join(mounted, 'ca.crt') },
  };
}

function proxyOf({ cluster, clusterAt }: Found, env: NodeJS.ProcessEnv): string | undefined {
  const { 'proxy-url': given, server } = cluster;
  const proxy = given || proxyFromEnvironment(new URL(server), env);
  if (!proxy || isHttp(proxy)) return proxy;
  const where = given ? `${clusterAt}: proxy-url` : 'HTTPS_PROXY or HTTP_PROXY:';
  throw invalid(`${where} ${withoutLogin(proxy)} can't be used; give the URL of an HTTP or HTTPS proxy`);
}

function isHttp(url: string): boolean {
  return /^https?:/i.test(url) && URL.canParse(url);
}

/** Returns a URL as far as it may be shown. */
function withoutLogin(url: string): string {
  return url.replace(/^(\w+:\/\/)?[^/]*@/, '$1');
}

/**
 * Chooses the proxy by HTTPS_PROXY, HTTP_PROXY and NO_PROXY, in upper or lower case, as Go's programs do.
 * @see https://pkg.go.dev/golang.org/x/net/http/httpproxy#Config
 */
function proxyFromEnvironment(server: URL, env: NodeJS.ProcessEnv): string | undefined {
  const given = (name: string): string => env[name] || env[name.toLowerCase()] || '';
  const isSecure = server.protocol === 'https:';
  const proxy = given(isSecure ? 'HTTPS_PROXY' : 'HTTP_PROXY');
  const host = server.hostname.replace(/^\[|\]$/g, '');
  const port = server.port || (isSecure ? '443' : '80');
  const direct = ['localhost', '127.0.0.0/8', '::1', ...given('NO_PROXY').split(',')];
  if (!proxy || direct.some((entry) => isMeant(entry.trim().toLowerCase(), host, port))) return undefined;
  return proxy.includes('://') ? proxy : `http://${proxy}`;
}

/** Reports whether a host is meant by a star, address, network or domain, which may have a port. */
function isMeant(entry: string, host: string, port: string): boolean {
  if (entry === '' || entry === '*') return entry === '*';
  const parts = /^(?:\[(?<address>[^\]]*)\]|(?<plain>[^:]*))(?::(?<onPort>\d+))?$/.exec(entry)?.groups;
  if (parts?.onPort !== undefined && parts.onPort !== port) return false;
  const name = parts?.address ?? parts?.plain ?? entry;
  const [address = '', prefix] = name.split('/');
  const family = isIP(address);
  if (family === 0) {
    const domain = name.replace(/^\*/, '');
    return domain.startsWith('.') ? host.endsWith(domain) : host === domain || host.endsWith(`.${domain}`);
  }
  const all = family === 4 ? 32 : 128;
  const network = new BlockList();
  if (Number(prefix ?? all) <= all)
    network.addSubnet(address, Number(prefix ?? all), `ipv${family as 4 | 6}`);
  return isIP(host) !== 0 && network.check(host, `ipv${isIP(host) as 4 | 6}`);
}

function invalid(message: string): OperatorError {
  return new OperatorError({ reason: 'InvalidInput', message });
}
