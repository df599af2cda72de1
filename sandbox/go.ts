import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { programEnded } from '#telemetry/program.js';
import type { Program } from './program.js';
import type { Log } from './progress.js';

/** The Go package of each program of a control plane. Any other program is the root package of its module. */
const packages: Readonly<Partial<Record<string, string>>> = {
  etcd: 'go.etcd.io/etcd/server/v3',
  'kube-apiserver': 'k8s.io/kubernetes/cmd/kube-apiserver',
  'kube-controller-manager': 'k8s.io/kubernetes/cmd/kube-controller-manager',
  'kube-scheduler': 'k8s.io/kubernetes/cmd/kube-scheduler',
  kubectl: 'k8s.io/kubernetes/cmd/kubectl',
  kwok: 'sigs.k8s.io/kwok/cmd/kwok',
};

/** The name `go build` gives a program's file: the last element of its package, without the major version. */
export function goBinaryName(program: Program): string {
  return program === 'etcd' ? 'server' : program;
}

/** The arguments of the `go build` that puts `programs`, as the module in `folder` pins them, into the folder `output`. */
export function goBuildArguments(programs: readonly Program[], output: string, folder: string): string[] {
  return [
    ...['build', '-v', '-mod=readonly', '-trimpath', '-ldflags', ['-s -w', ...stamps(folder)].join(' ')],
    ...['-o', output, ...programs.map((program) => packages[program] ?? '.')],
  ];
}

/** What makes a program of Kubernetes say its version; nothing in a module without such programs. */
function stamps(folder: string): string[] {
  if (!readFileSync(join(folder, 'go.mod'), 'utf8').includes('k8s.io/kubernetes ')) return [];
  const version = kubernetesVersion(folder);
  const [major, minor] = version.slice(1).split('.');
  const stamp = 'k8s.io/component-base/version';
  return [
    `-X ${stamp}.gitVersion=${version}`,
    `-X ${stamp}.gitMajor=${major ?? ''}`,
    `-X ${stamp}.gitMinor=${minor ?? ''}`,
  ];
}

/** The Kubernetes that the module in `folder` pins, e.g. `v1.36.3`. */
export function kubernetesVersion(folder: string): string {
  return goMod(folder, /^[\t ]*(?:require )?k8s\.io\/kubernetes (v\S+)/m);
}

/** Throws unless a Go that can build the modules pinned in `folder` is on the PATH. */
export async function checkGo(env: NodeJS.ProcessEnv, folder: string, log: Log): Promise<void> {
  const wanted = goMod(folder, /^go (\S+)$/m);
  const go = spawn('go', ['env', 'GOVERSION'], {
    ...{ cwd: folder, env: goEnvironment(env) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [stdout, stderr] = ['', ''];
  go.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  go.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const { code } = await programEnded(go, {
    ...{ what: 'go env GOVERSION', say: log },
    remedy: `run it in ${folder} to see what it waits for, such as the download of another Go`,
  }).catch((error: unknown) => {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new Error(waysOut(code === 'ENOENT' ? 'There is no `go` on the PATH.' : `${message}.`, wanted));
  });
  // In the folder of go.mod, Go fetches the version asked for by itself unless GOTOOLCHAIN forbids it; then it says so.
  if (code !== 0) throw new Error(waysOut(`Go cannot build the control plane: ${stderr.trim()}.`, wanted));
  const found = /^go(\d+)\.(\d+)/.exec(stdout.trim());
  const [major, minor] = wanted.split('.').map(Number);
  const isDevelopment = stdout.startsWith('devel');
  if (
    isDevelopment ||
    (found && compare([Number(found[1]), Number(found[2])], [major ?? 0, minor ?? 0]) >= 0)
  )
    return;
  throw new Error(waysOut(`The Go on the PATH is ${stdout.trim()}, too old.`, wanted));
}

function waysOut(reason: string, goVersion: string): string {
  return [
    `The programs of the control plane are not there and cannot be built. ${reason} Ways out:`,
    `  - install Go ${goVersion} or later (https://go.dev/dl) and run this again;`,
    '  - point KUBEBUILDER_ASSETS at a folder that holds etcd, kube-apiserver, kube-controller-manager,',
    '    kube-scheduler, kubectl and kwok;',
    '  - for the demo, use a cluster of your own instead: npm run demo -- --context NAME',
  ].join('\n');
}

function compare(a: readonly [number, number], b: readonly [number, number]): number {
  return a[0] === b[0] ? a[1] - b[1] : a[0] - b[0];
}

function goMod(folder: string, pattern: RegExp): string {
  const file = join(folder, 'go.mod');
  const value = pattern.exec(readFileSync(file, 'utf8'))?.[1];
  if (value === undefined) throw new Error(`${file} has nothing that matches ${String(pattern)}.`);
  return value;
}

/** A workspace file above this folder must not change which modules are built. */
export function goEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return { ...env, GOWORK: 'off' };
}
