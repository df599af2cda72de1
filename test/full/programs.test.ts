import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { isRunning } from '../../sandbox/process.js';
import { findPrograms, programCache } from '../../sandbox/programs.js';
import { waitFor } from '../../sandbox/wait.js';

let home: string;
let env: NodeJS.ProcessEnv;
let lines: string[];
const log = (line: string): void => {
  lines.push(line);
};

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'programs-test-'));
  const XDG_CACHE_HOME = join(home, 'cache');
  env = {
    HOME: home,
    XDG_CACHE_HOME,
    PATH: join(home, 'bin'),
    RECONSTRUCT_DOWNLOAD_MIRROR: 'off',
    GOPROXY: 'off',
  };
  lines = [];
});
afterEach(() => rm(home, { recursive: true, force: true }));

async function putProgram(path: string, content = '#!/bin/sh\n'): Promise<string> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, content);
  await chmod(path, 0o755);
  return path;
}

/** A `go` that answers `go env GOVERSION` with `version` and does `build` in place of `go build`, told -o in $out. */
async function putGo(version: string, build: string): Promise<void> {
  const script = `#!/bin/sh
export PATH=/usr/bin:/bin
if [ "$1" = env ]; then echo ${version}; exit; fi
echo build >> ${home}/builds
while [ "$1" != -o ]; do shift; done
out=$2
${build}
`;
  await putProgram(join(home, 'bin', 'go'), script);
}

const buildKubectl =
  'echo k8s.io/kubernetes/cmd/kubectl >&2; echo built > $out/kubectl; chmod +x $out/kubectl';

describe('the order programs are looked for in', () => {
  test('a folder named by the user comes first, and what it lacks comes from the next', async () => {
    const own = await putProgram(join(home, 'own', 'etcd'));
    await putProgram(join(home, 'kubebuilder', 'etcd'));
    const apiServer = await putProgram(join(home, 'kubebuilder', 'kube-apiserver'));
    await putProgram(join(programCache(env), 'kube-apiserver'));
    const kubectl = await putProgram(join(programCache(env), 'kubectl'));

    env.RECONSTRUCT_CONTROL_PLANE = join(home, 'own');
    env.KUBEBUILDER_ASSETS = join(home, 'kubebuilder');
    const found = await findPrograms(['etcd', 'kube-apiserver', 'kubectl'], { env, log });

    expect(found).toEqual({ etcd: own, 'kube-apiserver': apiServer, kubectl });
  });
});

describe('building', () => {
  test('puts the program into the cache and leaves nothing else', async () => {
    await putGo('go1.26.8', buildKubectl);

    const { kubectl } = await findPrograms(['kubectl'], { env, log });

    expect(await readFile(kubectl, 'utf8')).toBe('built\n');
    expect(kubectl).toBe(join(programCache(env), 'kubectl'));
    expect(await readdir(dirname(programCache(env)))).toEqual([programCache(env).split('/').at(-1)]);
    expect(lines.join('\n')).toMatch(/Building kubectl with Go[^]*1 packages compiled/);
  });

  test('is refused to a Go that is too old, and the error names the ways out', async () => {
    await putGo('go1.20.1', buildKubectl);

    await expect(findPrograms(['kubectl'], { env, log })).rejects.toThrow(
      /GOPROXY=off names no proxy[^]*Ways out/,
    );

    expect(lines.join('\n')).toContain('The Go on the PATH is go1.20.1, older than 1.26.0.');
  });

  test.each(['SIGINT', 'SIGKILL'] as const)('%s in the middle ends Go and leaves nothing', async (signal) => {
    await putGo(
      'go1.26.8',
      `echo $$ > ${home}/go.pid; touch $out/half; sleep 60 & echo $! > ${home}/sub.pid; wait`,
    );
    const module = fileURLToPath(new URL('../../sandbox/programs.ts', import.meta.url));
    const script = `import { findPrograms } from ${JSON.stringify(pathToFileURL(module))};
      await findPrograms(['kubectl']);`;
    const hook = new URL('../../sandbox/typescript-hook.mjs', import.meta.url).href;
    const starter = spawn(process.execPath, ['--import', hook, '--input-type=module', '-e', script], { env });
    const ended = once(starter, 'exit');
    const pids = await waitFor(
      'the build to begin',
      async () => {
        const files = [join(home, 'go.pid'), join(home, 'sub.pid')];
        const read = await Promise.all(files.map((file) => readFile(file, 'utf8')));
        return read.every((text) => text.endsWith('\n')) ? read.map(Number) : undefined;
      },
      { timeoutMilliseconds: 60_000 },
    );

    starter.kill(signal);

    expect(await ended).toEqual([null, signal]);
    await waitFor(
      'everything to be gone',
      async () => {
        const left = await readdir(dirname(programCache(env)));
        // After SIGKILL the lock stays, but a dead holder holds nothing.
        const files = left.filter((file) => signal === 'SIGINT' || !file.endsWith('.lock'));
        return files.length === 0 && !pids.some((pid) => isRunning({ pid })) ? true : undefined;
      },
      { timeoutMilliseconds: 30_000 },
    );
    await putGo('go1.26.8', buildKubectl);
    await findPrograms(['kubectl'], { env, log });
  });
});
