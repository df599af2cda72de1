import { existsSync, globSync, readFileSync } from 'node:fs';
import { join, normalize } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { repoFolder } from '../sandbox/paths.js';

const root = repoFolder();
const pages = globSync(['*.md', 'docs/**/*.md', 'bench/*.md', 'examples/**/*.md'], { cwd: root }).sort();

function textOf(file: string): string {
  return readFileSync(join(root, file), 'utf8');
}

test.each(pages)('%s links to files and headings that are there', (page) => {
  const text = withoutCode(textOf(page));
  const links = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link]) => link!);

  expect(links.filter((link) => !/^https?:/.test(link) && !leadsSomewhere(link, page))).toEqual([]);
});

/** Its scripts are those of an author's project; a scenario runs them. */
const OWN_KIND = 'docs/your-own-kind.md';

test.each(pages.filter((page) => page !== OWN_KIND))('%s names scripts that are there', (page) => {
  // The README goes on in a project that it makes.
  const manifests = [
    'package.json',
    ...(page === 'README.md' ? ['templates/init/package.template.json'] : []),
  ];
  const scripts = Object.assign(
    {},
    ...manifests.map((file) => (parse(textOf(file)) as { scripts: object }).scripts),
  ) as object;
  const named = [...textOf(page).matchAll(/npm run ([\w:]+)/g)].map(([, script]) => script!);

  expect(named.filter((script) => !Object.hasOwn(scripts, script))).toEqual([]);
});

test('the page of AppService shows the sample as it is', () => {
  expect(yamlIn('docs/reference/appservice.md')).toEqual([textOf('examples/appservice-sample.yaml')]);
});

test('the README is short, and quotes figures as bench/RESULTS.md has them', () => {
  const text = textOf('README.md');
  const results = textOf('bench/RESULTS.md').replaceAll(/ {2,}/g, ' ');

  expect(text.split('\n').length).toBeLessThanOrEqual(131);
  const [, won, lost] = /Won: (.*) Lost: (.*)/.exec(text.replaceAll('\n', ' '))!;
  const pairsIn = (part: string): string[][] =>
    [...part.matchAll(/([\d.]+ \w+) : ([\d.]+ \w+)/g)].map(([, ours, theirs]) => [ours!, theirs!]);
  expect(pairsIn(won!).every(([ours, theirs]) => parseFloat(ours!) < parseFloat(theirs!))).toBe(true);
  expect(pairsIn(lost!).every(([ours, theirs]) => parseFloat(ours!) > parseFloat(theirs!))).toBe(true);
  const pairs = pairsIn(text.replaceAll('\n', ' '));
  expect(pairs.length).toBeGreaterThan(5);
  for (const [ours, theirs] of pairs) expect(results).toContain(`| ${ours} | ${theirs} |`);
});

test.each([
  ['README.md', 'examples/composition/app.ts'],
  ['docs/adding-a-step.md', 'test/engine/adding-a-step.test.ts'],
  ['docs/core-contract.md', 'examples/pod-history/kind.mjs'],
])('%s shows code of %s as it is', (page, file) => {
  const [, code] = /^```[tj]s\n([^]*?)^```$/m.exec(textOf(page))!;

  expect(textOf(file)).toContain(code);
});

test('the page of the policy shows what the example of one holds', () => {
  const { data } = parse(textOf('examples/policy/policy.yaml')) as { data: Record<string, string> };

  const shown = yamlIn('docs/reference/policy.md').map((block) => parse(block) as unknown);
  expect(shown).toEqual([parse(data['policy.yaml']!)]);
});

function yamlIn(page: string): string[] {
  return [...textOf(page).matchAll(/^```yaml\n([^]*?)^```$/gm)].map(([, block]) => block!);
}

function withoutCode(text: string): string {
  return text.replaceAll(/^ *```[^]*?^ *```$/gm, '').replaceAll(/`[^`\n]*`/g, '');
}

/** A file or folder of the repository and, after `#`, a heading of it as GitHub names it. */
function leadsSomewhere(link: string, page: string): boolean {
  const [path = '', anchor] = link.split('#');
  const target = path === '' ? page : normalize(join(page, '..', path));
  if (target.startsWith('..') || !existsSync(join(root, target))) return false;
  if (anchor === undefined) return true;
  const headings = [...textOf(target).matchAll(/^#+ (.*)$/gm)].map(([, heading]) => anchorOf(heading!));
  return headings.includes(anchor);
}

function anchorOf(heading: string): string {
  const words = heading.toLowerCase().replaceAll(/[^\w\s-]/g, '');
  return words.replaceAll(' ', '-');
}
