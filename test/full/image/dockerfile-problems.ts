import { DockerfileParser } from 'dockerfile-ast';
import type { Copy } from 'dockerfile-ast';
import { validate } from 'dockerfile-utils';
import { imageConfig } from './dockerfile.js';

/** What the linter finds, and what it doesn't look for: as sentences. */
export function dockerfileProblems(dockerfile: string): string[] {
  const found = validate(dockerfile).map(
    ({ message, range }) => `line ${range.start.line + 1}: ${JSON.stringify(message)}`,
  );
  const parsed = DockerfileParser.parse(dockerfile);
  for (const from of parsed.getFROMs()) {
    const image = from.getImage() ?? '';
    const name = /^\$\{(\w+)\}$/.exec(image)?.[1];
    const given = name ? argumentDefault(dockerfile, name) : image;
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

/** What an ARG is where nobody gives it. */
export function argumentDefault(dockerfile: string, arg: string): string {
  return new RegExp(`^ARG ${arg}=(\\S+)$`, 'm').exec(dockerfile)?.[1] ?? '';
}

/** What the builder is sent and doesn't copy, or is to copy and isn't sent. */
export function notCopied(dockerfile: string, dockerignore: string): string[] {
  const allowed = dockerignore
    .split('\n')
    .filter((rule) => rule.startsWith('!'))
    .map((rule) => rule.slice(1));
  const sources = DockerfileParser.parse(dockerfile)
    .getCOPYs()
    .filter((copy: Copy) => copy.getFlags().every((flag) => flag.getName() !== 'from'))
    .flatMap((copy) => copy.getArguments().slice(0, -1))
    .map((argument) => argument.getValue());
  const isWithin = (path: string, folder: string): boolean =>
    path === folder || path.startsWith(`${folder}/`);
  return [
    ...sources.filter((source) => !allowed.some((path) => isWithin(source, path))),
    ...allowed.filter((path) => !sources.some((source) => isWithin(source, path))),
  ];
}
