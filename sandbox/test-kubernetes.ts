import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { kubernetesVersion } from './go.js';
import { repoFolder, sandboxFolder } from './paths.js';
import { findPrograms } from './programs.js';

/** The folders that pin a Kubernetes, by its minor version: the sandbox's own, and older ones of its API server alone. */
const modules: Readonly<Record<string, string>> = Object.fromEntries(
  [sandboxFolder(), ...olderModules()].map((folder) => [minorOf(kubernetesVersion(folder)), folder]),
);

const oldest =
  Object.keys(modules).sort((a, b) => Number(a.split('.')[1]) - Number(b.split('.')[1]))[0] ?? '';
const given = process.argv.slice(2);
const isVersion = /^\d+\.\d+$/.test(given[0] ?? '');
const version = isVersion ? (given[0] ?? '') : oldest;
process.exitCode = await run(version, isVersion ? given.slice(1) : given);

/**
 * Runs the tests that need no controller of Kubernetes on etcd and the API server of a version, which is fetched where
 * the cache lacks it. Returns their exit code.
 */
async function run(minor: string, args: readonly string[]): Promise<number> {
  const module = modules[minor];
  if (module === undefined) {
    process.stderr.write(
      `There is no Kubernetes ${minor} here; there are ${Object.keys(modules).sort().join(' and ')}.\n`,
    );
    return 2;
  }
  // Whatever is named for other tests is of another version.
  const { RECONSTRUCT_CONTROL_PLANE: _, KUBEBUILDER_ASSETS: __, ...env } = process.env;
  const programs = await findPrograms(['kube-apiserver'], { module, env });
  const vitest = join(repoFolder(), 'node_modules/vitest/vitest.mjs');
  const tests = spawn(process.execPath, [vitest, 'run', '--project', 'kubernetes', ...args], {
    cwd: repoFolder(),
    stdio: 'inherit',
    env: {
      ...env,
      RECONSTRUCT_CONTROL_PLANE: dirname(programs['kube-apiserver']),
      RECONSTRUCT_TEST_KUBERNETES: kubernetesVersion(module),
    },
  });
  const [code] = (await once(tests, 'exit')) as [number | null];
  return code ?? 1;
}

function olderModules(): string[] {
  const parent = join(sandboxFolder(), 'kubernetes');
  return readdirSync(parent).map((name) => join(parent, name));
}

/** `v1.34.4` is of `1.34`. */
function minorOf(version: string): string {
  return version.slice(1).split('.').slice(0, 2).join('.');
}
