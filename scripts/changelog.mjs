// Prints what CHANGELOG.md says of a release, e.g. `node scripts/changelog.mjs v0.1.0`. Fails unless the tag names the version
// of package.json, and the changelog has something to say of it.
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** The text below the heading of a version, without the heading. @returns undefined where there is none */
export function sectionOf(changelog, version) {
  const [, ...sections] = changelog.split(/^## /m);
  const found = sections.find((section) => /^\[?([^\]\s]+)/.exec(section)?.[1] === version);
  return found?.slice(found.indexOf('\n')).trim() || undefined;
}

/** Why a tag can't be released. @returns undefined where it can */
export function obstacle(tag, version, changelog) {
  if (tag !== `v${version}`) return `The tag ${tag} isn't v${version}, the version of package.json`;
  if (sectionOf(changelog, version) === undefined)
    return `CHANGELOG.md says nothing of ${version}: give what is under Unreleased a heading "## ${version} - <date>"`;
  return undefined;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const changelog = readFileSync(join(root, 'CHANGELOG.md'), 'utf8');
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const why = obstacle(process.argv[2], version, changelog);
  if (why) process.stderr.write(`${why}\n`);
  else process.stdout.write(`${sectionOf(changelog, version)}\n`);
  process.exitCode = why ? 1 : 0;
}
