import { basename, dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { format, resolveConfig } from 'prettier';
import { expect, test } from 'vitest';
import { repoFolder } from '../../sandbox/paths.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { installCrd } from '../support/cluster.js';
import { inspectable, Inspector } from '../support/inspector.js';
import { startController } from '../support/operator.js';
import { settled } from '../support/requests.js';
import { Subject } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';

const PAGE = 'docs/walk.md';
const user = 'operator-15';
const EDITS = 3;
const cluster = openCluster();

/** One edit may pass so much; the goal is 300 functions. */
const BARS = { files: 36, functions: 348 };

const lib = pathToFileURL(join(repoFolder(), 'lib/')).href;

/** With `--update`, Vitest writes the page. */
test('one edit of a custom resource passes the files of docs/walk.md', async () => {
  await installCrd(cluster, appService);
  const apps = new Subject(cluster, appService, await cluster.makeNamespace('walk'));
  // Not the bundle, which is one file.
  const command = [...inspectable, '--enable-source-maps', join(repoFolder(), 'lib/cli/main.js')];
  await using controller = await startController({
    ...{ cluster, user, kinds: [appService], namespaces: [apps.namespace] },
    // As users run it: at another level, the log passes functions of its own.
    args: ['--log-level', 'info'],
    program: (args) => ({ file: process.execPath, args: [...command, ...args], env: process.env }),
  });
  using inspector = await Inspector.attach(controller);
  const image = (round: number): object => ({
    size: 0,
    image: `example.com/web:${round}`,
    ports: [{ port: 80 }],
  });
  await apps.create('web', image(0));
  await apps.ready('web');
  await settled(cluster, user);
  await inspector.startCoverage();

  const walks: Map<string, Set<string>>[] = [];
  for (let round = 1; round <= EDITS; round++) {
    await inspector.takeCoverage();
    await apps.edit('web', image(round));
    await apps.asRendered('web');
    await apps.ready('web');
    await settled(cluster, user);
    walks.push(walkOf(await inspector.takeCoverage()));
  }

  // What only some edits pass is a timer that came meanwhile.
  const [first, ...others] = walks as [Map<string, Set<string>>, ...Map<string, Set<string>>[]];
  const files = [...first.keys()].filter((file) => others.every((walk) => walk.has(file))).sort();
  const functions = files.map((file) => {
    const called = [...first.get(file)!];
    return called.filter((name) => others.every((walk) => walk.get(file)!.has(name))).length;
  });
  const total = functions.reduce((sum, count) => sum + count, 0);
  console.log(`one edit: ${files.length} files, ${total} functions`);
  const text = pageOf(files);
  const options = { ...(await resolveConfig(join(repoFolder(), PAGE))), parser: 'markdown' };
  await expect(await format(text, options)).toMatchFileSnapshot(join(repoFolder(), PAGE));
  expect(files.length).toBeLessThanOrEqual(BARS.files);
  expect(total).toBeLessThanOrEqual(BARS.functions);
});

/** The functions of this project that were called, by file. */
function walkOf(scripts: Awaited<ReturnType<Inspector['takeCoverage']>>): Map<string, Set<string>> {
  const walk = new Map<string, Set<string>>();
  for (const { url, functions } of scripts) {
    if (!url.startsWith(lib)) continue;
    const called = functions.filter(({ ranges: [range] }) => range!.count > 0 && range!.startOffset > 0);
    const names = called.map(({ functionName, ranges: [range] }) => `${functionName}@${range!.startOffset}`);
    const file = `src/${url.slice(lib.length).replace(/\.js$/, '.ts')}`;
    if (names.length > 0) walk.set(file, new Set(names));
  }
  return walk;
}

function pageOf(files: readonly string[]): string {
  return `<!-- Measured by test/full/walk.test.ts; edit nothing here. -->

# The walk of one edit

The files that run between the watch line of an edited AppService and its right status, on an operator that had settled: by V8's
precise coverage, in ${EDITS} edits alike. [The engine](engine.md) says what each part gives.

${[...new Set(files.map(dirname))].map((folder) => linesOf(folder, files)).join('\n')}
`;
}

/** An item of the list for a folder, in lines as long as those of other pages. */
function linesOf(folder: string, files: readonly string[]): string {
  const inside = files.filter((file) => dirname(file) === folder);
  const lines = [`- \`${folder}/\`:`];
  for (const [index, file] of inside.entries()) {
    const name = `${basename(file)}${index < inside.length - 1 ? ',' : ''}`;
    if (`${lines.at(-1)} ${name}`.length > 130) lines.push(` `);
    lines.push(`${lines.pop()} ${name}`);
  }
  return lines.join('\n');
}
