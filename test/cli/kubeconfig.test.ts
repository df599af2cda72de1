import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createProxyServer } from 'node:http';
import { createSecureServer } from 'node:http2';
import type { Http2SecureServer, Http2ServerRequest } from 'node:http2';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { withCluster } from '../../src/cli/cluster.js';
import type { ClusterOptions } from '../../src/cli/options.js';
import { UserCredentials } from '../../src/client/credentials.js';
import { loadKubeconfig } from '../../src/client/kubeconfig.js';
import type { KubeconfigOptions } from '../../src/client/kubeconfig.js';
import type { Transport } from '../../src/client/transport.js';
import { selfSignedCertificate } from '../../src/telemetry/certificate.js';
import { intermediate, ofIntermediate } from './support/chain.js';

const own = (await selfSignedCertificate(Date.now())).current;
const client = (await selfSignedCertificate(Date.now())).current;
const base64 = (text: string): string => Buffer.from(text).toString('base64');

interface Seen {
  readonly headers: Readonly<Record<string, readonly string[]>>;
  readonly authorization: string | undefined;
  /** Public key of the client's certificate. */
  readonly certificate: string | undefined;
  readonly httpVersion: string;
}

let server: Http2SecureServer;
let port: number;
let seen: Seen[];
let folder: string;

/** An API server as far as commands ask it at their start. */
beforeAll(async () => {
  const options = { ...own, allowHTTP1: true, requestCert: true, rejectUnauthorized: false };
  server = createSecureServer(options, (request, response) => {
    const { authorization } = request.headers;
    const headers: Record<string, string[]> = {};
    for (let n = 0; n < request.rawHeaders.length; n += 2)
      (headers[request.rawHeaders[n]!.toLowerCase()] ??= []).push(request.rawHeaders[n + 1]!);
    seen.push({
      ...{ headers, authorization, httpVersion: request.httpVersion },
      certificate: certificateOf(request),
    });
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ major: '1', minor: '36' }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ({ port } = server.address() as AddressInfo);
  return () => server.close();
});

function certificateOf(request: Http2ServerRequest): string | undefined {
  const socket = (request.stream as unknown as { session?: { socket: TLSSocket } } | undefined)?.session
    ?.socket;
  const raw = socket?.getPeerX509Certificate()?.toString().replace(/\s/g, '');
  return raw;
}

beforeEach(() => {
  seen = [];
  folder = mkdtempSync(join(tmpdir(), 'kubeconfig-'));
  for (const name of ['KUBECONFIG', 'HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY']) {
    vi.stubEnv(name, undefined);
    vi.stubEnv(name.toLowerCase(), undefined);
  }
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

const file = (name: string, content: string, mode = 0o600): string => {
  const path = join(folder, name);
  mkdirSync(join(path, '..'), { recursive: true });
  writeFileSync(path, content);
  chmodSync(path, mode);
  return path;
};

type Fields = Readonly<Record<string, unknown>>;

const cluster = (fields: Fields = {}): Fields => ({
  server: `https://localhost:${port}`,
  'certificate-authority-data': base64(own.cert),
  ...fields,
});

const kubeconfig = (user: Fields, clusterFields: Fields = cluster(), context: Fields = {}): string =>
  JSON.stringify({
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'x' },
    clusters: [{ name: 'c', cluster: clusterFields }],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u', ...context } }],
  });

/** What the API server sees of the first request of a command with this kubeconfig. */
async function sentBy(
  content: string,
  use: (connection: { readonly transport: Transport }) => Promise<unknown> = () => Promise.resolve(),
  options: ClusterOptions = {},
): Promise<Seen> {
  const path = file('config', content);
  await withCluster({ ...options, kubeconfig: path }, async (_, connection) => {
    await use(connection);
  });
  return seen[0]!;
}

/** What a command with this kubeconfig ends with. */
const refusal = (content: string, options?: ClusterOptions): Promise<unknown> =>
  sentBy(content, undefined, options).then(
    () => 'accepted',
    (error: unknown) => ({ ...(error as { exitCode: number }), message: (error as Error).message }),
  );

const again = ({ transport }: { readonly transport: Transport }): Promise<unknown> =>
  transport.request({ method: 'GET', path: '/version' });

/** A credential plugin: a script of the shell. It notes that it was run, and its input. */
function plugin(name: string, script: string, mode?: number): string {
  return file(
    name,
    `#!/bin/sh\necho run >> "${folder}/runs"\nprintf %s "$KUBERNETES_EXEC_INFO" > "${folder}/info"\n${script}\n`,
    mode ?? 0o700,
  );
}
const runs = (): number => readFileSync(join(folder, 'runs'), 'utf8').split('\n').length - 1;

const V1 = 'client.authentication.k8s.io/v1';
const credential = (status: Fields, apiVersion = V1): string =>
  JSON.stringify({ apiVersion, kind: 'ExecCredential', status });
const exec = (fields: Fields): Fields => ({
  exec: { apiVersion: V1, interactiveMode: 'Never', ...fields },
});

describe('credentials of a kubeconfig, as the API server sees them', () => {
  const basic = `Basic ${base64('joe:secret')}`;
  test.each<[string, () => Fields, string | undefined]>([
    ['token', () => ({ token: 'one' }), 'Bearer one'],
    ['tokenFile', () => ({ tokenFile: file('token', 'filed\n') }), 'Bearer filed'],
    [
      'tokenFile, relative to the kubeconfig',
      () => (file('sub/token', 'filed'), { tokenFile: 'sub/token' }),
      'Bearer filed',
    ],
    [
      'tokenFile, which wins over token',
      () => ({ token: 'one', tokenFile: file('token', 'filed') }),
      'Bearer filed',
    ],
    ['username and password', () => ({ username: 'joe', password: 'secret' }), basic],
    [
      'token, which wins over exec',
      () => ({ token: 'one', ...exec({ command: plugin('p', 'exit 1') }) }),
      'Bearer one',
    ],
    ['none', () => ({}), undefined],
  ])('%s', async (_, user, authorization) => {
    expect((await sentBy(kubeconfig(user()))).authorization).toBe(authorization);
  });

  test('certificates in files are found beside the kubeconfig', async () => {
    file('ca.pem', own.cert);
    file('client.pem', client.cert);
    file('client.key', client.key);
    const { certificate } = await sentBy(
      kubeconfig(
        { 'client-certificate': 'client.pem', 'client-key': 'client.key' },
        {
          server: `https://127.0.0.1:${port}`,
          'certificate-authority': 'ca.pem',
          'tls-server-name': 'localhost',
        },
      ),
    );
    expect(certificate).toBe(client.cert.replace(/\s/g, ''));
  });

  test('a bundle that holds only an intermediate authority is trusted, as Go does', async () => {
    const chained = createSecureServer(ofIntermediate, (_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ major: '1', minor: '36' }));
    });
    await new Promise<void>((resolve) => chained.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void chained.close());
    const to = (ca: string): string =>
      kubeconfig(
        {},
        {
          server: `https://127.0.0.1:${(chained.address() as AddressInfo).port}`,
          'certificate-authority-data': base64(ca),
        },
      );
    expect(await refusal(to(intermediate))).toBe('accepted');
    expect(await refusal(to(own.cert))).toMatchObject({
      message: expect.stringContaining("isn't trusted") as string,
    });
  });

  test.each<[user: Fields, options: Pick<KubeconfigOptions, 'as' | 'asGroup'>, sent: Fields]>([
    [
      {},
      { as: 'jane', asGroup: ['a', 'b'] },
      { 'impersonate-user': ['jane'], 'impersonate-group': ['a', 'b'] },
    ],
    [
      { as: 'joe', 'as-uid': '42', 'as-groups': ['admins'] },
      { as: 'jane' },
      { 'impersonate-user': ['jane'] },
    ],
    [
      { as: 'joe', 'as-uid': '42', 'as-groups': ['admins'] },
      { asGroup: ['a'] },
      { 'impersonate-user': ['joe'], 'impersonate-uid': ['42'], 'impersonate-group': ['a'] },
    ],
  ])('of %j with %j, the user is impersonated that is given', async (user, options, sent) => {
    const { headers } = await sentBy(kubeconfig({ token: 'one', ...user }), undefined, options);
    const names = Object.keys(headers).filter((name) => name.startsWith('impersonate'));
    expect(Object.fromEntries(names.map((name) => [name, headers[name]]))).toEqual(sent);
  });

  test('--verbose prints each request, and neither credentials nor bodies', async () => {
    const stderr = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    const use = async ({ transport }: { readonly transport: Transport }): Promise<void> => {
      await transport.request({
        method: 'PATCH',
        path: '/a',
        query: { force: 'true' },
        body: { secret: 'x' },
      });
    };
    await sentBy(kubeconfig({ token: 'one' }), use, { verbose: true });
    const lines = stderr.mock.calls.join('').replaceAll(/in \d+ ms/g, 'in 1 ms');
    stderr.mockRestore();
    const first = `GET https://localhost:${port}/version 200 in 1 ms\n`;
    // The packed command sends no other.
    expect([first, `${first}PATCH https://localhost:${port}/a?force=true 200 in 1 ms\n`]).toContain(lines);
  });

  test('an impersonated user comes with uid, groups and extra, each of them on its own', async () => {
    const { headers } = await sentBy(
      kubeconfig({
        ...{ token: 'one', as: 'jörg', 'as-uid': '42', 'as-groups': ['a, b', 'c'] },
        'as-user-extra': { 'Acme.com/Scopes': ['read', 'write'] },
      }),
    );
    expect(headers).toMatchObject({
      'impersonate-user': [Buffer.from('jörg').toString('latin1')],
      'impersonate-uid': ['42'],
      'impersonate-group': ['a, b', 'c'],
      'impersonate-extra-acme.com%2fscopes': ['read', 'write'],
    });
  });

  test('of several kubeconfigs the first that names something wins, and files may be missing', async () => {
    file('sub/token', 'first');
    const first = file(
      'sub/first',
      `users: [{name: u, user: {tokenFile: token}}]\nclusters: null\ncontexts: []\ncurrent-context: ""\n`,
    );
    const second = file('second', kubeconfig({ token: 'second' }));
    vi.stubEnv('KUBECONFIG', [join(folder, 'gone'), first, second, second].join(delimiter));
    await withCluster({}, () => Promise.resolve());
    expect(seen[0]?.authorization).toBe('Bearer first');
  });
});

test.each([
  ['empty', ''],
  ['half written', 'a\nb'],
])('a token file that is %s for a moment leaves the token that was read before', async (_, content) => {
  const access = loadKubeconfig({
    kubeconfig: file('config', kubeconfig({ tokenFile: file('token', 'first') })),
  });
  const credentials = new UserCredentials(access);
  const { signal } = new AbortController();
  for (const read of ['first', content, content]) {
    file('token', read);
    expect((await credentials.read(signal)).headers.authorization).toBe('Bearer first');
  }
});

describe('a credential plugin', () => {
  test.each([V1, 'client.authentication.k8s.io/v1beta1'])(
    'of %s is found beside the kubeconfig, and gets what client-go gives',
    async (apiVersion) => {
      plugin('bin/login', `test "$LEVEL" = high && echo '${credential({ token: 'issued' }, apiVersion)}'`);
      const env = [{ name: 'LEVEL', value: 'high' }];
      const fields = { apiVersion, command: './bin/login', env, args: null, provideClusterInfo: true };
      const extension = { audience: 'here', depth: 2 };
      const extensions = [{ name: 'client.authentication.k8s.io/exec', extension }];
      const content = kubeconfig(exec(fields), cluster({ extensions, 'tls-server-name': 'localhost' }));
      expect((await sentBy(content, again)).authorization).toBe('Bearer issued');
      expect(runs()).toBe(1);
      expect(JSON.parse(readFileSync(join(folder, 'info'), 'utf8'))).toEqual({
        ...{ apiVersion, kind: 'ExecCredential' },
        spec: {
          cluster: {
            server: `https://localhost:${port}`,
            'tls-server-name': 'localhost',
            'certificate-authority-data': base64(own.cert),
            config: extension,
          },
          interactive: false,
        },
      });
    },
  );

  test.each([
    ['is run again for what has expired', -1, 2],
    ['is not run again for what is good', 3600, 1],
  ])('%s', async (_, seconds, times) => {
    const expirationTimestamp = new Date(Date.now() + seconds * 1000).toISOString();
    const command = plugin('login', `echo '${credential({ token: 't', expirationTimestamp })}'`);
    const access = loadKubeconfig({ kubeconfig: file('config', kubeconfig(exec({ command }))) });
    const credentials = new UserCredentials(access);
    for (let n = 0; n < 2; n++) await credentials.read(new AbortController().signal);
    expect(runs()).toBe(times);
  });

  test('is run again for what no request can carry', async () => {
    const [bad, good] = ['a\u0001', 't'].map((token) => credential({ token }));
    const command = plugin(
      'login',
      `test -e "${folder}/good" && echo '${good}' || echo '${bad}'; touch "${folder}/good"`,
    );
    const access = loadKubeconfig({ kubeconfig: file('config', kubeconfig(exec({ command }))) });
    const credentials = new UserCredentials(access);
    const { signal } = new AbortController();
    await expect(credentials.read(signal)).rejects.toMatchObject({ reason: 'Unauthorized' });
    expect((await credentials.read(signal)).headers.authorization).toBe('Bearer t');
  });

  test('that hangs is named while it is waited for, and killed', async () => {
    const command = plugin('login', 'echo "open https://login.example.com" >&2\nsleep 600');
    const access = loadKubeconfig({ kubeconfig: file('config', kubeconfig(exec({ command }))) });
    const said: string[] = [];
    const credentials = new UserCredentials(access, (line) => said.push(line), 500);
    await expect(credentials.read(new AbortController().signal)).rejects.toMatchObject({
      reason: 'Unauthorized',
      message: expect.stringMatching(
        /user "u": credential plugin .*login gave no output for \d+ s and was killed; run .*login by hand/,
      ) as string,
    });
    expect(said).toContain('open https://login.example.com');
  });

  test.each<[string, () => Fields, string]>([
    [
      'is not there',
      () => ({ command: 'no-such-plugin', installHint: 'Install it by "brew install no-such-plugin".' }),
      'no-such-plugin: not found; Install it by "brew install no-such-plugin"',
    ],
    [
      'fails',
      () => ({ command: plugin('login', 'echo "log in first" >&2; exit 3') }),
      'ended with exit code 3: log in first',
    ],
    ['answers something else', () => ({ command: plugin('login', 'echo hello') }), 'is no ExecCredential'],
    [
      'issues nothing',
      () => ({ command: plugin('login', `echo '${credential({})}'`) }),
      'has issued neither a token nor a client certificate with its key',
    ],
  ])('that %s ends the command with the reason', async (_, fields, message) => {
    expect(await refusal(kubeconfig(exec(fields())))).toMatchObject({
      exitCode: 3,
      message: expect.stringContaining(message) as string,
    });
    expect(seen).toEqual([]);
  });
});

describe('what a kubeconfig asks for and can not be had is refused, with file, entry and remedy', () => {
  const beside = { command: 'x' };
  test.each<[string, Fields, Fields, string]>([
    [
      'auth-provider',
      { 'auth-provider': { name: 'oidc', config: {} } },
      {},
      'user "u": auth-provider "oidc" isn\'t supported; use exec with a credential plugin (for OIDC, kubelogin), or a token',
    ],
    ['token and password', { token: 't', username: 'joe', password: 'p' }, {}, 'user "u": has both'],
    ['a certificate without key', { 'client-certificate-data': 'eA==' }, {}, 'user "u": has a client'],
    ['groups without a user', { token: 't', 'as-groups': ['a'] }, {}, 'user "u": as-uid, as-groups and'],
    [
      'a number as a token',
      { token: 12345 },
      {},
      'can\'t be read as a kubeconfig: user "u": token isn\'t text',
    ],
    ['no tokenFile', { tokenFile: 'gone' }, {}, 'user "u": tokenFile '],
    ['exec without apiVersion', { exec: beside }, {}, 'user "u": exec has apiVersion undefined'],
    ['exec without command', exec({}), {}, 'user "u": exec has no command'],
    [
      'a SOCKS proxy',
      {},
      { 'proxy-url': 'socks5://localhost:1' },
      'cluster "c": proxy-url socks5://localhost:1',
    ],
    ['CA and insecure', {}, { 'insecure-skip-tls-verify': true }, 'cluster "c": has both'],
    ['no server', {}, { server: '' }, 'cluster "c": has no server'],
  ])('%s', async (_, user, clusterFields, message) => {
    expect(await refusal(kubeconfig(user, cluster(clusterFields)))).toMatchObject({
      message: expect.stringContaining(`${join(folder, 'config')}: ${message}`) as string,
    });
    expect(seen).toEqual([]);
  });

  test('a key of another certificate, which is no fault of the cluster', async () => {
    const user = { 'client-certificate-data': base64(own.cert), 'client-key-data': base64(client.key) };
    expect(await refusal(kubeconfig(user))).toMatchObject({
      exitCode: 3,
      message: expect.stringMatching(
        /^The certificates of the kubeconfig can't be used: .*; check certificate-authority, client-certificate and client-key$/,
      ) as string,
    });
  });

  test.each<[string, () => Fields, string]>([
    ['a token file of several lines', () => ({ tokenFile: file('token', 'a\nb\n') }), 'tokenFile /'],
    [
      'a token file with a control character',
      () => ({ tokenFile: file('token', 'a\u0001b') }),
      'tokenFile /',
    ],
    ['a token with a line break at its end', () => ({ token: 'a\n' }), 'token '],
    [
      'an issued token',
      () => exec({ command: plugin('p', `echo '${credential({ token: 'a\u0001' })}'`) }),
      'credential plugin .*: its token ',
    ],
    ['a name of two lines', () => ({ token: 'a', as: 'jane\njoe' }), 'a name to act as '],
  ])('%s that no request can carry', async (_, user, where) => {
    const { exitCode, message } = (await refusal(kubeconfig(user()))) as Record<string, unknown>;
    expect([exitCode, message]).toEqual([
      3,
      expect.stringMatching(
        `^${join(folder, 'config')}: user "u": ${where}.*has a line break, or a character that can't be sent; write it in one line$`,
      ),
    ]);
    expect(message).not.toContain('joe');
    expect(seen).toEqual([]);
  });

  test('a user that is not there', async () => {
    expect(await refusal(kubeconfig({}, cluster(), { user: 'gone' }))).toMatchObject({
      exitCode: 2,
      message: `${join(folder, 'config')}: its context x names a user that isn't there; choose one with --context: x`,
    });
  });
});

describe('a proxy', () => {
  let asked: string[];
  let proxy: string;

  /** Takes requests to tunnel, of which it notes the targets; all lead to the API server. */
  beforeEach(async () => {
    asked = [];
    const tunnel: Server = createProxyServer().on('connect', (request, near) => {
      asked.push(`${request.url ?? ''} ${request.headers['proxy-authorization'] ?? ''}`.trim());
      const far = connect(port, '127.0.0.1', () => {
        near.write('HTTP/1.1 200 OK\r\n\r\n');
        near.pipe(far).pipe(near);
      });
      for (const socket of [near, far]) socket.on('error', () => undefined);
    });
    await new Promise<void>((resolve) => tunnel.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void tunnel.close());
    proxy = `http://joe:p%40ss@127.0.0.1:${(tunnel.address() as AddressInfo).port}`;
  });

  const away = (host: string): Fields =>
    cluster({ server: `https://${host}`, 'tls-server-name': 'localhost' });
  const login = `Basic ${base64('joe:p@ss')}`;

  test('of the kubeconfig is used, whatever the environment says', async () => {
    vi.stubEnv('NO_PROXY', '*');
    await sentBy(kubeconfig({ token: 't' }, cluster({ 'proxy-url': proxy })));
    expect(asked).toEqual([`localhost:${port} ${login}`]);
  });

  /** A proxy that does this with each connection. */
  async function broken(take: (socket: Socket) => void): Promise<string> {
    const listener = createServer((socket) => {
      socket.on('error', () => undefined);
      take(socket);
    });
    await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void listener.close());
    return `127.0.0.1:${(listener.address() as AddressInfo).port}`;
  }
  const says = (text: string) => (socket: Socket) =>
    socket.once('data', () => socket.end(`${text}\r\ncontent-length: 0\r\n\r\n`));

  test.each<[what: string, take: ((socket: Socket) => void) | undefined, why: string, server: string]>([
    ['is down', undefined, 'connect ECONNREFUSED', 'https://api.example.com'],
    [
      'wants a login',
      says('HTTP/1.1 407 Proxy Authentication Required'),
      'it answers 407 Proxy Authentication Required',
      'https://api.example.com',
    ],
    [
      'knows no way',
      says('HTTP/1.1 502 Bad Gateway'),
      'it answers 502 Bad Gateway',
      'https://api.example.com',
    ],
    ['hangs up', (socket) => socket.destroy(), '', 'https://api.example.com'],
    ['says nothing', () => undefined, '', 'https://api.example.com'],
    ['is down', undefined, 'connect ECONNREFUSED', 'http://api.example.com'],
    ['wants a login', says('HTTP/1.1 407 No'), 'Proxy Authentication Required', 'http://api.example.com'],
  ])('that %s is named, without its password, and not the cluster', async (_, take, why, server) => {
    const host = take ? await broken(take) : '127.0.0.1:1';
    const content = kubeconfig({}, { server, 'proxy-url': `http://joe:p%40ss@${host}` });
    const { exitCode, message } = (await refusal(content, { requestTimeout: 500 })) as {
      exitCode: number;
      message: string;
    };
    expect(message).toContain(`The proxy ${host} lets nothing through: ${why}`);
    expect(message).toContain(
      '; check proxy-url of the cluster in the kubeconfig, or HTTPS_PROXY and NO_PROXY',
    );
    expect(message).not.toMatch(/joe|p%40ss|api\.example\.com/);
    expect(exitCode).toBe(3);
  });

  test('that can not be used is named without its password', async () => {
    const content = kubeconfig({}, cluster({ 'proxy-url': 'ftp://joe:secret@localhost:1' }));
    expect(await refusal(content)).toMatchObject({
      message: expect.stringContaining("proxy-url ftp://localhost:1 can't be used") as string,
    });
  });

  test.each(['HTTPS_PROXY', 'https_proxy'])('of %s is used', async (name) => {
    vi.stubEnv(name, proxy.replace('http://', ''));
    await sentBy(kubeconfig({ token: 't' }, away('api.example.com')));
    expect(asked).toEqual([`api.example.com:443 ${login}`]);
    expect(seen[0]).toMatchObject({ authorization: 'Bearer t', httpVersion: '2.0' });
  });
});
