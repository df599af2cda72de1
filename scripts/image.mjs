// Builds the image with Docker's buildx. `build` makes it for this machine and loads it; `push` makes it for all platforms,
// with an SBOM and its provenance, and pushes it. IMAGE names it, PLATFORMS are those of `push`, DOCKER is the program, and
// IMAGE_MINUTES are how long it may take.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const { IMAGE, PLATFORMS = 'linux/amd64,linux/arm64', DOCKER = 'docker', IMAGE_MINUTES = '60' } = process.env;

const targets = {
  build: () => ['--load', '--tag', IMAGE ?? `reconstruct:${version}`],
  push: () => [
    ...['--push', '--platform', PLATFORMS, '--sbom=true', '--provenance=mode=max'],
    ...[
      '--tag',
      IMAGE ?? fail('Say where to: IMAGE=registry.example.com/me/reconstruct:0.1.0 npm run image:push'),
    ],
  ],
};

const [target, ...rest] = process.argv.slice(2);
const options = (targets[target] ?? (() => fail(`Unknown target ${target}; there are build and push`)))();
const args = ['buildx', 'build', ...options, '--build-arg', `VERSION=${version}`, ...rest, '.'];
process.stderr.write(`> ${DOCKER} buildx build, at most ${IMAGE_MINUTES} min\n`);
const limits = { timeout: Number(IMAGE_MINUTES) * 60_000, killSignal: 'SIGKILL' };
const { status, error } = spawnSync(DOCKER, args, { cwd: root, stdio: 'inherit', ...limits });
if (error?.code === 'ETIMEDOUT')
  fail(
    `${DOCKER} buildx build was not done after ${IMAGE_MINUTES} min and was killed: see that the registries of its base ` +
      'images answer, or give it longer with IMAGE_MINUTES',
  );
if (error)
  fail(
    `${DOCKER} can't be started (${error.code}): install Docker with buildx, or name another program with DOCKER`,
  );
process.exitCode = status ?? 1;

function fail(text) {
  process.stderr.write(`${text}\n`);
  process.exit(2);
}
