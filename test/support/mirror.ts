import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, request, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import { pinnedVersion, platform, type Program } from '../../sandbox/go.js';
import { sandboxFolder } from '../../sandbox/paths.js';

/** Fault of one response: another status, or its end after some bytes, or silence after them. */
export interface Fault {
  readonly status?: number;
  readonly cutAfter?: number;
  readonly silentAfter?: number;
  /** Waits before a cut, given how many bytes of the file have been sent. @default - nothing */
  readonly hold?: (end: number) => Promise<void>;
}

/** Server on loopback with the files of https://dl.k8s.io and https://github.com below their hosts' names. */
export class Mirror implements AsyncDisposable {
  /** Path and range of each request. */
  readonly requests: string[] = [];
  /** Those of the next responses, by path. */
  readonly faults = new Map<string, Fault[]>();
  ranges = true;
  readonly files: Map<string, Buffer>;
  readonly #server: Server;

  static async start(files: Map<string, Buffer>): Promise<Mirror> {
    const mirror = new Mirror(files);
    await once(mirror.#server.listen(0, '127.0.0.1'), 'listening');
    return mirror;
  }

  private constructor(files: Map<string, Buffer>) {
    this.files = files;
    this.#server = createServer((message, response) => {
      this.#answer(message, response);
    });
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close().closeAllConnections();
    await once(this.#server, 'close').catch(() => undefined);
  }

  #answer({ url = '', headers }: IncomingMessage, response: ServerResponse): void {
    this.requests.push([url, ...(headers.range === undefined ? [] : [headers.range])].join(' '));
    const file = this.files.get(url);
    const { status, cutAfter, silentAfter, hold }: Fault = this.faults.get(url)?.shift() ?? {};
    if (status !== undefined || file === undefined) return void response.writeHead(status ?? 404).end();
    const from = this.ranges ? Number(/\d+/.exec(headers.range ?? '')?.[0] ?? 0) : 0;
    if (from >= file.length) return void response.writeHead(416).end();
    const rest = file.subarray(from);
    const bytes = rest.subarray(0, cutAfter ?? silentAfter ?? rest.length);
    if (silentAfter === 0) return;
    response.writeHead(from > 0 ? 206 : 200, { 'content-length': rest.length });
    if (bytes.length === rest.length) return void response.end(rest);
    response.write(bytes);
    if (cutAfter === undefined) return;
    const cut = (): unknown => response.destroy();
    void (hold?.(from + bytes.length) ?? Promise.resolve()).then(cut, cut);
  }
}

/** Paths of the pinned releases of programs for this platform, with the files that carry their sums. */
export function releasedFiles(programs: Readonly<Partial<Record<Program, Buffer>>>): Map<string, Buffer> {
  const files = new Map<string, Buffer>();
  const sum = (content: Buffer): string => createHash('sha256').update(content).digest('hex');
  for (const [program, content] of Object.entries(programs)) {
    const path = releasePath(program as Program);
    const file = program === 'etcd' ? etcdArchive(content) : content;
    files.set(path, file);
    const name = path.slice(path.lastIndexOf('/') + 1);
    const text =
      program === 'etcd' ? `${sum(Buffer.from('x'))}  other.zip\n${sum(file)}  ${name}\n` : sum(file);
    if (program !== 'kwok') files.set(sumPath(program as Program), Buffer.from(text));
  }
  return files;
}

/** Path of the release of a program. */
export function releasePath(program: Program): string {
  const version = (module: string): string => pinnedVersion(sandboxFolder(), module);
  if (program === 'etcd') {
    const etcd = version('go.etcd.io/etcd/server/v3');
    return `/github.com/etcd-io/etcd/releases/download/${etcd}/etcd-${etcd}-${platform}.tar.gz`;
  }
  if (program === 'kwok')
    return `/github.com/kubernetes-sigs/kwok/releases/download/${version('sigs.k8s.io/kwok')}/kwok-${platform}`;
  return `/dl.k8s.io/release/${version('k8s.io/kubernetes')}/bin/${platform.replace('-', '/')}/${program}`;
}

/** Path of the sum of a program's release. */
export function sumPath(program: Program): string {
  const path = releasePath(program);
  return program === 'etcd' ? path.replace(/[^/]+$/, 'SHA256SUMS') : `${path}.sha256`;
}

/** The archive of a release of etcd. */
function etcdArchive(content: Buffer): Buffer {
  const folder = releasePath('etcd').replace(/^.*\/|\.tar\.gz$/g, '');
  const entry = (name: string, file: Buffer): Buffer => {
    const header = Buffer.alloc(512);
    header.write(name);
    header.write(file.length.toString(8).padStart(11, '0'), 124);
    return Buffer.concat([header, file, Buffer.alloc(-file.length & 511)]);
  };
  const entries = [entry(`${folder}/README.md`, Buffer.from('etcd')), entry(`${folder}/etcd`, content)];
  return gzipSync(Buffer.concat([...entries, Buffer.alloc(1024)]), { level: 1 });
}

/** A proxy on loopback that counts what goes through it. */
export async function startProxy(): Promise<{ url: string; passed: string[] } & AsyncDisposable> {
  const passed: string[] = [];
  const server = createServer((message, response) => {
    passed.push(message.url ?? '');
    const { method, headers } = message;
    message.pipe(
      request(message.url ?? '', { method, headers }, (answer) => {
        answer.pipe(response.writeHead(answer.statusCode ?? 502, answer.headers));
      }),
    );
  });
  server.on('connect', ({ url = '' }: IncomingMessage, socket, head: Buffer) => {
    passed.push(url);
    const [host, port] = url.split(':');
    const upstream = connect(Number(port), host, () => {
      socket.write('HTTP/1.1 200 Connection Established\r\n\r\n');
      upstream.write(head);
      upstream.pipe(socket).pipe(upstream);
    });
    for (const end of [upstream, socket]) end.on('error', () => end.destroy());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    ...{ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, passed },
    [Symbol.asyncDispose]: async () => {
      server.close().closeAllConnections();
      await once(server, 'close').catch(() => undefined);
    },
  };
}
