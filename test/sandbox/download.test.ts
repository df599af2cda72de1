import { constants } from 'node:fs';
import { access, chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir, totalmem } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { downloadReleases } from '../../sandbox/download.js';
import { platform, type Program } from '../../sandbox/go.js';
import { findPrograms, programCache } from '../../sandbox/programs.js';
import { waitFor } from '../../sandbox/wait.js';
import { type Fault, Mirror, releasedFiles, releasePath, startProxy, sumPath } from '../support/mirror.js';

vi.mock(import('node:os'), async (original) => ({ ...(await original()), totalmem: vi.fn(() => 16e9) }));

const names = ['etcd', 'kube-apiserver', 'kubectl'] as const;
const content = (name: string): Buffer => Buffer.from(`the program ${name}, of some bytes`);
/** Nothing listens there: the port is reserved. */
const closed = 'http://127.0.0.1:2';

let home: string;
let env: NodeJS.ProcessEnv;
let lines: string[];
const log = (line: string): void => {
  lines.push(line);
};

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'download-test-'));
  // No Go, and no way to one.
  env = { HOME: home, XDG_CACHE_HOME: join(home, 'cache'), PATH: join(home, 'bin'), GOPROXY: closed };
  lines = [];
});
afterEach(() => rm(home, { recursive: true, force: true }));

const find = (): Promise<Readonly<Record<string, string>>> => findPrograms(names, { env, log });
const startMirror = async (): Promise<Mirror> => {
  const mirror = await Mirror.start(
    releasedFiles(Object.fromEntries(names.map((name) => [name, content(name)]))),
  );
  env.RECONSTRUCT_DOWNLOAD_MIRROR = mirror.url;
  return mirror;
};
/** Names of the programs in the cache. */
const cached = (): Promise<string[]> => readdir(programCache(env)).catch(() => []);
const requestsOf = (mirror: Mirror, name: Program): string[] =>
  mirror.requests.filter((path) => path.split(' ')[0] === releasePath(name));

/** Waits until the bytes before a cut are in the file, at whose end the next request begins. */
const arrival = async (end: number): Promise<void> => {
  const file = join(`${programCache(env)}.partial`, 'kubectl');
  const size = async () => (await stat(file)).size === end || undefined;
  await waitFor(`the first ${end} bytes`, size, { timeoutMilliseconds: 30_000, intervalMilliseconds: 5 });
};

describe.runIf(process.platform === 'linux')('releases', () => {
  test('come from the sites of their projects into the cache, verified, and leave nothing else', async () => {
    await using mirror = await startMirror();

    const found = await find();

    for (const name of names) {
      expect(found[name]).toBe(join(programCache(env), name));
      expect(await readFile(found[name]!)).toEqual(content(name));
      await access(found[name]!, constants.X_OK);
    }
    expect(await readdir(dirname(programCache(env)))).toEqual([basename(programCache(env))]);
    expect(mirror.requests.sort()).toEqual(
      names.flatMap((name) => [releasePath(name), sumPath(name)]).sort(),
    );
    expect(lines.join('\n')).toMatch(
      /^Downloading etcd, kube-apiserver, kubectl, once, to .*\nDownloaded in/,
    );
    expect(await find()).toEqual(found);
    expect(mirror.requests).toHaveLength(6);
  });

  const other = `${'0'.repeat(64)}  other\n`;
  test.each<[string, (mirror: Mirror) => void, RegExp]>([
    [
      'another sum',
      (m) => m.files.set(sumPath('kubectl'), Buffer.from('0'.repeat(64))),
      /sum is [0-9a-f]{64}, and 0{64} is published/,
    ],
    [
      'a list of sums without it',
      (m) => m.files.set(sumPath('kubectl'), Buffer.from(other)),
      /and none is published/,
    ],
    ['no sum', (m) => m.files.delete(sumPath('kubectl')), /kubectl\.sha256: HTTP 404/],
    ['a refusal', (m) => m.faults.set(releasePath('kubectl'), [{ status: 403 }]), /kubectl: HTTP 403/],
  ])('with %s is not used, while the others are', async (_, break_, reason) => {
    await using mirror = await startMirror();
    break_(mirror);

    const failure = find();

    await expect(failure).rejects.toThrow(/The control plane lacks kubectl:/);
    await expect(failure).rejects.toThrow(reason);
    expect(await cached()).toEqual(['etcd', 'kube-apiserver']);
  });

  test('credentials of a mirror and of proxies are in no error', async () => {
    await using mirror = await startMirror();
    mirror.files.set(sumPath('kubectl'), Buffer.from('0'.repeat(64)));
    const address = new URL(env.RECONSTRUCT_DOWNLOAD_MIRROR ?? '');
    Object.assign(address, { username: 'me', password: 'hunter2' });
    for (const [name, value, said] of [
      ['RECONSTRUCT_DOWNLOAD_MIRROR', address.href, /its SHA-256 sum is/],
      [
        'RECONSTRUCT_DOWNLOAD_MIRROR',
        'me:hunter2@mirror',
        /RECONSTRUCT_DOWNLOAD_MIRROR=...@mirror has to be/,
      ],
      ['HTTPS_PROXY', 'me:hunter2@proxy', /has to be a URL/],
    ] as const) {
      const failure = await findPrograms(names, { env: { ...env, [name]: value }, log }).catch(String);
      expect(failure).toMatch(said);
      expect(failure).not.toContain('hunter2');
    }
  });

  test('of kwok, which publishes no sums, have to be those that are pinned', async () => {
    await using mirror = await Mirror.start(releasedFiles({ kwok: content('kwok') }));
    env.RECONSTRUCT_DOWNLOAD_MIRROR = mirror.url;

    await expect(findPrograms(['kwok'], { env, log })).rejects.toThrow(/kwok-.*its SHA-256 sum is/);
    expect(await cached()).toEqual([]);
  });

  test.each<[string, Fault]>([
    ['cut', { cutAfter: 10, hold: arrival }],
    ['stalled', { silentAfter: 10 }],
  ])('of which the transfer is %s are taken up where it ended', async (_, fault) => {
    await using mirror = await startMirror();
    mirror.faults.set(releasePath('kubectl'), [fault, fault]);
    const cache = programCache(env);
    const release = { program: 'kubectl', url: mirror.url + releasePath('kubectl') };
    const sha256 = { url: mirror.url + sumPath('kubectl') };

    expect(
      await downloadReleases([{ ...release, sha256 }], {
        ...{ cache, env, log, stallMilliseconds: 50, pauseMilliseconds: 1 },
      }),
    ).toEqual([]);

    expect(await readFile(join(cache, 'kubectl'))).toEqual(content('kubectl'));
    const path = releasePath('kubectl');
    expect(requestsOf(mirror, 'kubectl')).toEqual([path, `${path} bytes=10-`, `${path} bytes=20-`]);
  });

  test('of which the transfer breaks again and again are given up', async () => {
    await using mirror = await startMirror();
    mirror.faults.set(releasePath('kubectl'), Array<Fault>(9).fill({ cutAfter: 1, hold: arrival }));
    const release = { program: 'kubectl', url: mirror.url + releasePath('kubectl'), sha256: '' };
    const limits = { attempts: 3, pauseMilliseconds: 20 };
    const started = performance.now();

    const failures = await downloadReleases([release], { cache: programCache(env), env, log, ...limits });

    expect(failures).toHaveLength(1);
    expect(requestsOf(mirror, 'kubectl')).toHaveLength(3);
    expect(performance.now() - started).toBeGreaterThan(35);
  });

  test('of which the transfer ends go on there in the next attempt', async () => {
    await using mirror = await startMirror();
    mirror.faults.set(releasePath('kubectl'), [{ cutAfter: 10, hold: arrival }, { status: 503 }]);
    await expect(find()).rejects.toThrow(/lacks kubectl:[^]*HTTP 503/);
    mirror.requests.length = 0;

    await find();

    expect(mirror.requests.sort()).toEqual(
      [`${releasePath('kubectl')} bytes=10-`, sumPath('kubectl')].sort(),
    );
  });

  test.each([
    ['of another file', 'something else', true],
    ['more than the whole', 'x'.repeat(1_000), true],
    ['the whole', content('kubectl').toString(), true],
    ['a part, of a server without ranges,', 'the program', false],
  ])('of which an earlier attempt has left bytes, %s, are right in the end', async (_, left, ranges) => {
    await using mirror = await startMirror();
    mirror.ranges = ranges;
    await mkdir(`${programCache(env)}.partial`, { recursive: true });
    await writeFile(join(`${programCache(env)}.partial`, 'kubectl'), left);

    const found = await find();

    expect(await readFile(found['kubectl']!)).toEqual(content('kubectl'));
  });

  test('come through a proxy, but for what NO_PROXY names', async () => {
    await using mirror = await startMirror();
    await using proxy = await startProxy();
    Object.assign(env, { http_proxy: '', HTTP_PROXY: proxy.url, NO_PROXY: '127.0.0.1' });
    await findPrograms(['kubectl'], { env, log });
    expect(proxy.passed).toEqual([]);

    delete env.NO_PROXY;
    await findPrograms(['kube-apiserver'], { env, log });
    expect(proxy.passed.length).toBeGreaterThan(0);
    expect(mirror.requests).toHaveLength(4);
  });

  test('without a network are given up at once, and the error names reasons and ways out', async () => {
    env.RECONSTRUCT_DOWNLOAD_MIRROR = closed;

    const message = await find().then(() => '', String);

    // All programs have it in common; the other is of the toolchain.
    expect(message.match(/http\S+ connect ECONNREFUSED/g)).toHaveLength(2);
    expect(message).toContain('lacks etcd, kube-apiserver, kubectl:');
    expect(message).toContain('The Go toolchain cannot be downloaded');
    for (const way of [
      'CONTROL_PLANE',
      'HTTPS_PROXY',
      'DOWNLOAD_MIRROR',
      'GOPROXY',
      'npm run demo -- --context',
    ])
      expect(message).toContain(way);
  });

  test('from a host that never answers are given up together', async () => {
    await using mirror = await startMirror();
    const releases = names.map((program) => {
      mirror.faults.set(sumPath(program), [{ silentAfter: 0 }]);
      const sha256 = { url: mirror.url + sumPath(program) };
      return { program, url: mirror.url + releasePath(program), sha256 };
    });
    const options = { cache: programCache(env), env, log, firstByteMilliseconds: 1_000 };

    const failures = await downloadReleases(releases, options);

    expect(failures).toEqual([`${mirror.url}: no answer within 1 s`]);
    // At the same time, and without a second try.
    expect(mirror.requests).toHaveLength(3);
  });

  test.each([
    [
      'RECONSTRUCT_DOWNLOAD_MIRROR',
      'example.com',
      /RECONSTRUCT_DOWNLOAD_MIRROR=example\.com has to be the URL/,
    ],
    [
      'HTTPS_PROXY',
      'proxy',
      /has to be a URL such as .*, not proxy[^]*The Go toolchain cannot be downloaded/,
    ],
    ['http_proxy', 'socks4://proxy', /not socks4:\/\/proxy[^]*The Go toolchain cannot be downloaded/],
  ])('%s=%s is refused', async (name, value, message) => {
    env[name] = value;
    await expect(find()).rejects.toThrow(message);
  });
});

describe('the Go toolchain', () => {
  const findKubectl = (): Promise<unknown> =>
    findPrograms(['kubectl'], { env: { ...env, RECONSTRUCT_DOWNLOAD_MIRROR: 'off' }, log });

  test('of another content than the pinned never runs, and nothing of it is left', async () => {
    const version = `v0.0.1-go1.26.8.${platform}`;
    const path = `/golang.org/toolchain/@v/${version}.zip`;
    const go = `#!/bin/sh\ntouch ${join(home, 'it-ran')}\n`;
    await using proxy = await Mirror.start(
      new Map([[path, zipOf(`golang.org/toolchain@${version}/bin/go`, Buffer.from(go))]]),
    );
    // The first has nothing; the second has it.
    env.GOPROXY = `${closed},${proxy.url}/|direct`;

    await expect(findKubectl()).rejects.toThrow(/has the hash h1:\S+= instead of h1:\S+=/);

    expect(proxy.requests).toEqual([path]);
    expect(await readdir(home)).toEqual(['cache']);
    expect(await readdir(join(home, 'cache', 'reconstruct', 'go'))).toEqual([]);
  });

  test.each([
    ['a page', '<html>Log in</html>'],
    ['a broken zip', zipOf('a', Buffer.from('b')).subarray(40)],
  ])('that turns out to be %s is refused with the likely cause', async (_, content) => {
    const path = `/golang.org/toolchain/@v/v0.0.1-go1.26.8.${platform}.zip`;
    await using proxy = await Mirror.start(new Map([[path, Buffer.from(content)]]));
    env.GOPROXY = proxy.url;

    await expect(findKubectl()).rejects.toThrow(/isn't the zip of a module \(a login page of a proxy\?\)/);
  });

  test.each(['off', 'direct'])('is not to be had with GOPROXY=%s', async (value) => {
    env.GOPROXY = value;
    await expect(findKubectl()).rejects.toThrow(`GOPROXY=${value} names no proxy to download from`);
  });
});

describe('a build', () => {
  const findKubectl = async (build: string): Promise<unknown> => {
    await mkdir(env.PATH!);
    const go = join(env.PATH!, 'go');
    await writeFile(go, `#!/bin/sh\nif [ "$1" = env ]; then echo go1.26.8; exit; fi\n${build}\n`);
    await chmod(go, 0o755);
    return findPrograms(['kubectl'], { env: { ...env, RECONSTRUCT_DOWNLOAD_MIRROR: 'off' }, log });
  };

  test.each([
    [16e9, 'GOGC=400'],
    [8e9, 'GOGC=none'],
  ])('on a machine with %d bytes of memory has %s', async (bytes, setting) => {
    vi.mocked(totalmem).mockReturnValue(bytes);
    await expect(findKubectl('echo "GOGC=${GOGC:-none}" >&2; exit 1')).rejects.toThrow(setting);
  });

  test.each(['kill -KILL $$', 'echo "compile: signal: killed" >&2; exit 1'])(
    'that is killed names memory: %s',
    async (build) => {
      await expect(findKubectl(build)).rejects.toThrow(/go build failed \(.*; memory has probably run out\)/);
    },
  );
});

test('programs of KUBEBUILDER_ASSETS are named', async () => {
  env.KUBEBUILDER_ASSETS = join(home, 'assets');
  await mkdir(env.KUBEBUILDER_ASSETS);
  for (const name of names) await writeFile(join(env.KUBEBUILDER_ASSETS, name), '', { mode: 0o755 });

  await find();

  const folder = env.KUBEBUILDER_ASSETS;
  expect(lines).toEqual([
    expect.stringMatching(
      `^etcd, kube-apiserver, kubectl from KUBEBUILDER_ASSETS .${folder}.; the sandbox is tried with v1[.]`,
    ),
  ]);
});

/** A zip file with one file, which isn't compressed. */
function zipOf(name: string, content: Buffer): Buffer {
  const header = (length: number, sizes: number, nameLength: number): Buffer => {
    const bytes = Buffer.alloc(length);
    for (const at of [sizes, sizes + 4]) bytes.writeUInt32LE(content.length, at);
    bytes.writeUInt16LE(name.length, nameLength);
    return bytes;
  };
  const file = Buffer.concat([header(30, 18, 26), Buffer.from(name), content]);
  const entry = Buffer.concat([header(46, 20, 28), Buffer.from(name)]);
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06', 'latin1');
  end.writeUInt16LE(1, 10);
  end.writeUInt32LE(file.length, 16);
  return Buffer.concat([file, entry, end]);
}
