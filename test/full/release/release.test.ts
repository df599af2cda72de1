import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { repoFolder } from '../../../sandbox/paths.js';

const root = repoFolder();
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'release-'));
});
afterAll(() => {
  rmSync(folder, { recursive: true });
});

describe('the changelog', async () => {
  const { obstacle, sectionOf } = (await import(pathToFileURL(join(root, 'scripts/changelog.mjs')).href)) as {
    obstacle: (tag: string, version: string, changelog: string) => string | undefined;
    sectionOf: (changelog: string, version: string) => string | undefined;
  };
  const text =
    '# Changelog\n\n## Unreleased\n\n## 1.2.0 - 2026-01-02\n\n### Added\n\n- This.\n\n## [1.1.0] - 2026\n\n- That.\n';

  test('gives a release its section', () => {
    expect(sectionOf(text, '1.2.0')).toBe('### Added\n\n- This.');
    expect(sectionOf(text, '1.1.0')).toBe('- That.');
    expect(obstacle('v1.2.0', '1.2.0', text)).toBeUndefined();
  });

  test.for([
    ['v1.2.1', '1.2.0', /isn't v1\.2\.0/],
    ['v1.3.0', '1.3.0', /says nothing of 1\.3\.0/],
    ['v1.2', '1.2', /says nothing/],
  ] as const)('keeps %s from being released', ([tag, released, why]) => {
    expect(obstacle(tag, released, text)).toMatch(why);
  });
});

test('the bill of materials of a release names what is bundled, by what a scanner looks for', () => {
  const workflow = readFileSync(join(root, '.github/workflows/release.yml'), 'utf8');
  const [, args = ''] = /npm (sbom [^>]*) > release\/reconstruct-package/.exec(workflow) ?? [];
  const text = execFileSync('npm', args.split(' '), { cwd: root, encoding: 'utf8', stdio: 'pipe' });
  const { components } = JSON.parse(text) as {
    components: { name: string; version: string; purl: string }[];
  };
  const names = components.map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(['commander', 'undici', 'cdk8s', 'pino', '@bufbuild/cel']));
  const cel = components.find(({ name }) => name === '@bufbuild/cel');
  expect(cel).toMatchObject({
    purl: `pkg:npm/%40bufbuild/cel@${cel!.version}`,
    hashes: [{ alg: 'SHA-512', content: expect.stringMatching(/^[0-9a-f]{128}$/) as string }],
  });
});

describe('npm run image:*', () => {
  /** What Docker is asked for; or what is told where it isn't. */
  function image(
    target: string,
    env: NodeJS.ProcessEnv,
    script = 'echo "$@"',
  ): { readonly printed: string; readonly told: string; readonly status: number | null } {
    const docker = join(folder, 'docker');
    writeFileSync(docker, `#!/bin/sh\n${script}\n`);
    chmodSync(docker, 0o755);
    const { stdout, stderr, status } = spawnSync(
      process.execPath,
      [join(root, 'scripts/image.mjs'), target],
      {
        ...{ encoding: 'utf8', env: { PATH: process.env.PATH, DOCKER: docker, ...env } },
      },
    );
    return { printed: stdout, told: stderr, status };
  }

  test('build makes the image that install names, for this machine', () => {
    const argument = `--build-arg VERSION=${version} .\n`;
    expect(image('build', {}).printed).toBe(`buildx build --load --tag reconstruct:${version} ${argument}`);
    expect(image('build', { IMAGE: 'x/y:1' }).printed).toBe(`buildx build --load --tag x/y:1 ${argument}`);
  });

  test('push makes it for all platforms, with what proves where it comes from', () => {
    expect(image('push', { IMAGE: 'x/y:1' }).printed).toBe(
      'buildx build --push --platform linux/amd64,linux/arm64 --sbom=true --provenance=mode=max --tag x/y:1 ' +
        `--build-arg VERSION=${version} .\n`,
    );
  });

  test('a build that hangs is killed at the limit, with the remedy', () => {
    const { told, status } = image('build', { IMAGE_MINUTES: '0.002' }, 'exec sleep 600');

    expect(status).toBe(2);
    expect(told).toMatch(/^> \S+docker buildx build, at most 0.002 min\n/);
    expect(told).toMatch(
      /docker buildx build was not done after 0.002 min and was killed: .*IMAGE_MINUTES\n$/s,
    );
  });

  test('what is missing is reported', () => {
    expect(image('push', {})).toMatchObject({ status: 2, told: expect.stringContaining('IMAGE=') as string });
    expect(image('build', { DOCKER: '/nowhere/docker' })).toMatchObject({
      ...{ status: 2, told: expect.stringContaining('install Docker') as string },
    });
  });
});
