import { createHash } from 'node:crypto';
import { chmod, mkdir, open, readFile, rename, rm, rmdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import { EnvHttpProxyAgent, fetch, type Response } from 'undici';
import { formatDuration, type Log, showProgress } from './progress.js';

/** Limits of a transfer. */
interface Limits {
  /** Time until the first byte, with the connection, proxies and redirects. @default 5000 */
  readonly firstByteMilliseconds?: number;
  /** Silence after which a transfer is cut. @default 15000 */
  readonly stallMilliseconds?: number;
  /** Requests for one file, while each brings a part of it. @default 20 */
  readonly attempts?: number;
  /** Pause between them. @default 250 */
  readonly pauseMilliseconds?: number;
}

/** Transfers that one line of progress sums up. They go through the proxies of HTTP_PROXY, HTTPS_PROXY and NO_PROXY. */
export class Downloads implements AsyncDisposable {
  readonly #env: NodeJS.ProcessEnv;
  #agent: EnvHttpProxyAgent | undefined;
  readonly #limits: Required<Limits>;
  readonly #started = performance.now();
  /** Bytes of each file: before this process, by now, and in all. */
  readonly #files = new Map<string, { readonly before: number; done: number; total: number }>();

  constructor(env: NodeJS.ProcessEnv, limits: Limits = {}) {
    this.#env = env;
    this.#limits = {
      ...{ firstByteMilliseconds: 5_000, stallMilliseconds: 15_000, attempts: 20, pauseMilliseconds: 250 },
      ...limits,
    };
  }

  /** @throws Error where the settings of proxies can't be used; they may be for programs that know more kinds of proxies */
  #dispatcher(): EnvHttpProxyAgent {
    const httpProxy = this.#env.http_proxy || this.#env.HTTP_PROXY || '';
    const httpsProxy = this.#env.https_proxy || this.#env.HTTPS_PROXY || '';
    const noProxy = this.#env.no_proxy || this.#env.NO_PROXY || '';
    try {
      return (this.#agent ??= new EnvHttpProxyAgent({ httpProxy, httpsProxy, noProxy }));
    } catch (cause) {
      const given = httpsProxy || httpProxy;
      const message = `HTTP_PROXY or HTTPS_PROXY has to be a URL such as http://proxy:3128, not ${given.replace(/^.*@/, '...@')}`;
      throw new Error(message, { cause });
    }
  }

  /** State of all transfers, e.g. `26 %, 8 s left (120 of 451 MB)`. */
  get progress(): string {
    const sum = (of: (file: { before: number; done: number; total: number }) => number): number =>
      [...this.#files.values()].reduce((bytes, file) => bytes + of(file), 0);
    const [done, total] = [sum((file) => file.done), sum((file) => file.total)];
    const perMillisecond = (done - sum((file) => file.before)) / (performance.now() - this.#started);
    const megabytes = (bytes: number): string => (bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0);
    if (total === 0) return 'waiting for an answer';
    const left =
      perMillisecond > 0 ? formatDuration(Math.max(0, total - done) / perMillisecond) : 'unknown time';
    const percent = Math.min(99, Math.floor((100 * done) / total));
    return `${percent} %, ${left} left (${megabytes(done)} of ${megabytes(total)} MB)`;
  }

  /** @throws Error that names the address and what is wrong */
  async text(url: string): Promise<string> {
    const chunks: Uint8Array[] = [];
    await this.#transfer(url, {}, () => (chunk) => {
      chunks.push(chunk);
      return Promise.resolve();
    });
    return Buffer.concat(chunks).toString('utf8');
  }

  /**
   * Downloads a file. Goes on where an earlier attempt has ended; so the content is to be verified.
   * @throws Error that names the address and what is wrong; what has arrived stays for the next attempt
   */
  async file(url: string, path: string): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      const before = await sizeOf(path);
      try {
        await this.#append(url, path, before);
        return;
      } catch (error) {
        // A connection that breaks is taken up again as long as each one brings something.
        if (attempt >= this.#limits.attempts || (await sizeOf(path)) <= before) throw error;
        await delay(this.#limits.pauseMilliseconds);
      }
    }
  }

  async #append(url: string, path: string, before: number): Promise<void> {
    const headers = before > 0 ? { range: `bytes=${before}-` } : {};
    const file = { handle: undefined as Awaited<ReturnType<typeof open>> | undefined };
    try {
      await this.#transfer(url, headers, async (response) => {
        const from = response.status === 206 ? before : 0;
        const total = from + Number(response.headers.get('content-length') ?? 0);
        const counts = { before: from, done: from, total };
        this.#files.set(path, counts);
        const handle = (file.handle = await open(path, from > 0 ? 'a' : 'w'));
        return async (chunk) => {
          await handle.write(chunk);
          counts.done += chunk.length;
        };
      });
    } finally {
      await file.handle?.close();
    }
  }

  /** @param begin takes the head of the response, and returns what takes its bytes */
  async #transfer(
    url: string,
    headers: Record<string, string>,
    begin: (response: Response) => Promise<Sink> | Sink,
  ): Promise<void> {
    const dispatcher = this.#dispatcher();
    const { href, authorization } = withoutCredentials(url);
    const abort = new AbortController();
    const { firstByteMilliseconds, stallMilliseconds } = this.#limits;
    let limit = setTimeout(() => {
      abort.abort(new Error(`no answer within ${firstByteMilliseconds / 1_000} s`));
    }, firstByteMilliseconds);
    try {
      const response = await fetch(href, {
        dispatcher,
        signal: abort.signal,
        headers: { 'accept-encoding': 'identity', ...authorization, ...headers },
      });
      // Nothing is missing of the file.
      if (response.status === 416 && 'range' in headers) return;
      if (!response.ok) throw new Error(`HTTP ${response.status} ${response.statusText}`.trim());
      const sink = await begin(response);
      for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
        clearTimeout(limit);
        // A disk may be slow: what it takes is no silence.
        await sink(chunk);
        limit = setTimeout(() => {
          abort.abort(new Error(`no bytes for ${stallMilliseconds / 1_000} s`));
        }, stallMilliseconds);
      }
    } catch (error) {
      throw new DownloadError(href, reasonOf(abort.signal.aborted ? abort.signal.reason : error));
    } finally {
      clearTimeout(limit);
      abort.abort();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent?.destroy();
  }
}

class DownloadError extends Error {
  readonly summary: string;

  constructor(url: string, reason: string) {
    super(`${url}: ${reason}`);
    this.summary = `${new URL(url).origin}: ${reason}`;
  }
}

type Sink = (chunk: Uint8Array) => Promise<void>;

/** `fetch` refuses an address with a user and a password, as GOPROXY may have it. */
function withoutCredentials(address: string): { href: string; authorization: Record<string, string> } {
  const url = new URL(address);
  const { username, password } = url;
  if (username === '' && password === '') return { href: address, authorization: {} };
  [url.username, url.password] = ['', ''];
  const token = btoa(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`);
  return { href: url.href, authorization: { authorization: `Basic ${token}` } };
}

/** `fetch failed` says nothing; its innermost cause does. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.cause !== undefined) return reasonOf(error.cause);
  return error.message || ((error as NodeJS.ErrnoException).code ?? error.name);
}

async function sizeOf(path: string): Promise<number> {
  return (await stat(path).catch(() => undefined))?.size ?? 0;
}

/** A program as its project has released it. */
export interface Release {
  readonly program: string;
  readonly url: string;
  /** The SHA-256 sum of the file at the address, or the address of a text that has it, alone or before the file's name. */
  readonly sha256: string | { readonly url: string };
  /** Path of the program in the .tar.gz at the address. @default - the file is the program */
  readonly member?: string;
}

/** Files to download, and where they go. */
interface ReleaseOptions extends Limits {
  /** The folder the programs go to; made if missing. */
  readonly cache: string;
  readonly env: NodeJS.ProcessEnv;
  readonly log: Log;
}

/**
 * Downloads programs, all at once.
 *
 * **Guarantees**: a program appears in the cache complete and verified, or not at all. What has arrived of the others stays
 * beside it for the next attempt.
 *
 * @returns why programs are missing, a reason each
 */
export async function downloadReleases(
  releases: readonly Release[],
  { cache, env, log, ...limits }: ReleaseOptions,
): Promise<string[]> {
  const partial = `${cache}.partial`;
  await using downloads = new Downloads(env, limits);
  await mkdir(partial, { recursive: true });
  log(`Downloading ${releases.map(({ program }) => program).join(', ')}, once, to ${cache}.`);
  const started = Date.now();
  const progress = showProgress(() => `  downloading the control plane: ${downloads.progress}`, log);
  const attempts = await Promise.allSettled(
    releases.map((release) => downloadRelease(release, downloads, { cache, partial })),
  );
  progress.stop();
  const failures = attempts.flatMap((attempt) =>
    attempt.status === 'rejected' ? [attempt.reason as Error] : [],
  );
  if (failures.length === 0) {
    log(`Downloaded in ${formatDuration(Date.now() - started)}.`);
  }
  await rmdir(partial).catch(() => undefined); // Unless something is left for the next attempt.
  return summaryOf(failures);
}

/** Returns the reasons, a failure of a whole site once. */
function summaryOf(failures: readonly Error[]): string[] {
  const summaries = failures.map((failure) =>
    failure instanceof DownloadError ? failure.summary : failure.message,
  );
  const isCommon = (summary: string): boolean =>
    summaries.indexOf(summary) !== summaries.lastIndexOf(summary);
  const messages = failures.map(({ message }, at) =>
    isCommon(summaries[at] ?? '') ? summaries[at] : message,
  );
  return [...new Set(messages)].filter((message) => message !== undefined);
}

async function downloadRelease(
  release: Release,
  downloads: Downloads,
  folders: { readonly cache: string; readonly partial: string },
): Promise<void> {
  const { program, url, sha256, member } = release;
  const wanted = typeof sha256 === 'string' ? sha256 : sumIn(await downloads.text(sha256.url), url);
  const file = join(folders.partial, program);
  const isResumed = (await sizeOf(file)) > 0;
  await downloads.file(url, file);
  const content = await readFile(file);
  const found = createHash('sha256').update(content).digest('hex');
  if (found !== wanted) {
    await rm(file);
    // It may have begun as another file.
    if (isResumed) return downloadRelease(release, downloads, folders);
    const { href } = withoutCredentials(url);
    throw new Error(`${href}: its SHA-256 sum is ${found}, and ${wanted || 'none'} is published`);
  }
  const verified = `${file}.verified`;
  if (member === undefined) await rename(file, verified);
  else await writeFile(verified, tarMember(gunzipSync(content), member));
  await chmod(verified, 0o755);
  await mkdir(folders.cache, { recursive: true });
  await rename(verified, join(folders.cache, program));
  await rm(file, { force: true });
}

/** The sum of a file in the text published for it: alone, or in the line that ends with the file's name. */
function sumIn(text: string, url: string): string {
  const name = url.slice(url.lastIndexOf('/') + 1);
  const lines = text.split('\n').map((line) => line.trim().split(/\s+\*?/));
  const line = lines.find(([, file]) => file === name) ?? (lines[0]?.length === 1 ? lines[0] : undefined);
  return line?.[0] ?? '';
}

/** @throws Error without such a file */
function tarMember(tar: Buffer, member: string): Buffer {
  const field = (at: number, length: number): string =>
    tar.toString('utf8', at, at + length).split('\0', 1)[0] ?? '';
  for (let at = 0; at < tar.length;) {
    const size = Number.parseInt(field(at + 124, 12), 8) || 0;
    if (field(at, 100) === member) return tar.subarray(at + 512, at + 512 + size);
    at += 512 + Math.ceil(size / 512) * 512;
  }
  throw new Error(`The archive has no ${member}.`);
}
