// The documentation site: the Markdown of this repository, as it is. `npm run docs` builds it.
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitepress';

const root = join(dirname(fileURLToPath(import.meta.url)), '../../..');
const pages = globSync(
  ['{README,CHANGELOG,CONTRIBUTING,SECURITY}.md', 'docs/**/*.md', 'bench/*.md', 'examples/**/*.md'],
  { cwd: root },
);
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const mark = readFileSync(join(import.meta.dirname, 'favicon.svg'));
const logo = `data:image/svg+xml;base64,${mark.toString('base64')}`;
const { GITHUB_SERVER_URL = 'https://github.com', GITHUB_REPOSITORY, GITHUB_REF_NAME = 'main' } = process.env;
/** Where files that aren't pages are looked at. @default - nowhere, as long as the repository has no address */
const repository = GITHUB_REPOSITORY && `${GITHUB_SERVER_URL}/${GITHUB_REPOSITORY}`;

/** Pages in the order in which they are read; every other page of a folder follows by its name. */
const sections = {
  Tutorials: ['docs/tutorial.md', 'docs/your-own-kind.md', 'docs/upgrades.md'],
  'Run apps': [
    'docs/built-in-kinds.md',
    'docs/in-a-chart.md',
    'docs/gitops.md',
    'docs/ui.md',
    'docs/troubleshooting.md',
  ],
  'Write a kind': [
    ...[
      'kinds',
      'core-contract',
      'composition',
      'recipes',
      'dev',
      'testing',
      'changing-a-crd',
      'limits',
      'coming-from',
    ],
  ].map((name) => `docs/${name}.md`),
  Examples: below('examples'),
  Reference: ['docs/reference/cli.md', 'docs/reference/install.md', ...below('docs/reference')],
  Operate: [
    'docs/on-call.md',
    'docs/monitoring/README.md',
    'docs/runbooks/README.md',
    ...below('docs/runbooks'),
    'SECURITY.md',
  ],
  'How it works': [
    ...['engine', 'adding-a-step', 'promises', 'walk', 'decisions/README'].map((name) => `docs/${name}.md`),
    ...below('docs/decisions'),
  ],
  Project: ['bench/RESULTS.md', 'bench/README.md', 'CHANGELOG.md', 'CONTRIBUTING.md'],
};
const FOLDED = ['Reference', 'Operate', 'How it works', 'Project'];

const missing = pages.filter((page) => !Object.values(sections).flat().includes(page));
const extra = missing.filter((page) => !['README.md', 'docs/README.md'].includes(page));
if (extra.length > 0) throw new Error(`No section of the site has ${extra.join(', ')}`);

function below(folder) {
  return pages.filter((page) => page.startsWith(`${folder}/`)).sort();
}

function titleOf(page) {
  const text = readFileSync(join(root, page), 'utf8');
  return /^# (.*)$/m.exec(text)[1].replaceAll('`', '');
}

/** Path of a page on the site. */
function pathOf(page) {
  return `/${page.replace(/(^|\/)README\.md$/, '$1').replace(/\.md$/, '')}`;
}

/** Returns the anchor of a heading as GitHub has it, so that links hold in both. */
function anchorOf(heading) {
  return heading
    .toLowerCase()
    .replaceAll(/[^\w\s-]/g, '')
    .replaceAll(' ', '-');
}

/** Where a link of a page leads on the site. Files that aren't pages are those of the repository. */
function hrefOf(link, page) {
  if (/^(?:[a-z]+:|#|\/)/.test(link)) return link;
  const [path, anchor] = link.split('#');
  const target = posix.normalize(posix.join(posix.dirname(page), path));
  const hash = anchor ? `#${anchor}` : '';
  const linked = [target, posix.join(target, 'README.md')].find((file) => pages.includes(file));
  if (linked) return pathOf(linked) + hash;
  if (!existsSync(join(root, target))) throw new Error(`${page} links to ${link}, which isn't there`);
  return repository && `${repository}/blob/${GITHUB_REF_NAME}/${target}${hash}`;
}

/** Gives the front page what only a site has: a place to start. */
function startOf(readme) {
  const start = '[Start](docs/tutorial.md){.button .start} [Your own kind](docs/your-own-kind.md){.button}';
  const text = readme.replace(/^# .+\n\n(?:.+\n)+/, (head) => `${head}\n${start}\n`);
  if (text === readme) throw new Error('README.md begins with no title and paragraph');
  return text;
}

/** Turns a picture that goes by the reader's system into two, of which the style shows the one of the mode that is chosen on the site. */
function inBothModes(text) {
  return text.replace(
    /<picture>\s*<source [^>]*dark[^>]*srcset="([^"]+)"[^>]*>\s*<img ([^>]*)src="([^"]+)"([^>]*)>\s*<\/picture>/g,
    (_, dark, before, light, after) =>
      Object.entries({ light, dark })
        .map(([mode, file]) => `<img class="only-${mode}" ${before}src="./${file}"${after}>`)
        .join(''),
  );
}

/** Lets long names break where their parts end, and no option break after its dash. */
function withBreaks(html) {
  const broken = (word, option) =>
    option
      ? `<span class="option">${option}</span>`
      : word.replaceAll(/(?<=\w)[._/,:=]+(?=\w)|(?<=[a-z])(?=[A-Z])/g, '$&<wbr>');
  return html.replaceAll(/(?<=^|>)[^<]+/g, (text) =>
    text.replaceAll(/(?<!\S)(-[\w-]{1,14})(?![\w-])|\S{13,}/g, broken),
  );
}

/** Says how far a line of code is indented, for the style to indent what is left of it further. */
const indentation = {
  line(line) {
    const [indent] = /^ */.exec(textOf(line));
    line.properties.style = `--indent: ${indent.length}ch`;
  },
};

function textOf({ value = '', children = [] }) {
  return value + children.map(textOf).join('');
}

function forTheSite(markdown) {
  for (const name of ['text', 'code_inline']) {
    const rule = markdown.renderer.rules[name];
    markdown.renderer.rules[name] = (...token) => withBreaks(rule(...token));
  }
  markdown.core.ruler.before('normalize', 'for-the-site', (state) => {
    state.src = inBothModes(state.env.relativePath === 'index.md' ? startOf(state.src) : state.src);
  });
  linksBetweenPages(markdown);
}

/** Returns a page's first paragraph without its markup, as link previews and search engines show it. */
function descriptionOf(page) {
  const [, paragraph] = /^# .+\n+((?:[\w\x60*[].*\n)+)/m.exec(readFileSync(join(root, page), 'utf8')) ?? [];
  return paragraph
    ?.replaceAll(/\[([^[\]]+)\]\([^)]*\)|\*\*|`/g, '$1')
    .replaceAll(/\s+/g, ' ')
    .trim();
}

/** Turns links between files into links between pages. */
function linksBetweenPages(markdown) {
  markdown.core.ruler.push('links-between-pages', ({ tokens, env }) => {
    const page = env.relativePath.replace(/(^|\/)index\.md$/, '$1README.md');
    const links = tokens.flatMap(({ children }) => children ?? []).filter(({ type }) => type === 'link_open');
    for (const link of links) {
      const href = hrefOf(link.attrGet('href'), page);
      if (href) link.attrSet('href', href);
      else link.attrs = link.attrs.filter(([name]) => name !== 'href');
    }
  });
}

/** Weighs a page in the search. It runs in the browser, and can refer to nothing outside. */
function boostDocument(path) {
  if (/\/docs\/decisions\//.test(path)) return 0.001;
  return /\/(?:docs\/runbooks\/|bench\/|CHANGELOG|CONTRIBUTING)/.test(path) ? 0.1 : 1;
}

/** Finds what pages are compiled to import: they lie outside of the folder that has the packages. */
const vueOfTheSite = {
  name: 'vue-of-the-site',
  enforce: 'pre',
  resolveId(id, importer, { ssr }) {
    if (!['vue', 'vue/server-renderer'].includes(id)) return undefined;
    return ssr
      ? { id, external: true }
      : this.resolve(id, fileURLToPath(import.meta.url), { skipSelf: true });
  },
};

export default defineConfig({
  title: 'Reconstruct',
  description: 'Write a cdk8s construct, get a Kubernetes operator',
  // Pages of a repository are below its name.
  base: process.env.DOCS_BASE ?? '/',
  srcDir: '../..',
  outDir: '../../dist/docs',
  cacheDir: './node_modules/.cache',
  srcExclude: [
    'lib/**',
    'dist/**',
    'templates/**',
    'scripts/**',
    'runtime/**',
    'test/**',
    'gitops/**',
    'charts/**',
  ],
  rewrites: Object.fromEntries(
    pages
      .filter((page) => page.endsWith('README.md'))
      .map((page) => [page, page.replace(/README\.md$/, 'index.md')]),
  ),
  cleanUrls: true,
  head: [['link', { rel: 'icon', type: 'image/svg+xml', href: logo }]],
  transformPageData: ({ filePath, frontmatter }) => ({
    description: descriptionOf(filePath),
    // A page without headings has no outline, and can use its room.
    frontmatter: { ...frontmatter, aside: /^## /m.test(readFileSync(join(root, filePath), 'utf8')) },
  }),
  transformHead: ({ title, description }) => [
    ['meta', { property: 'og:type', content: 'website' }],
    ['meta', { property: 'og:title', content: title }],
    ['meta', { property: 'og:description', content: description }],
  ],
  vite: { plugins: [vueOfTheSite] },
  markdown: {
    config: forTheSite,
    anchor: { slugify: anchorOf },
    languageAlias: { console: 'sh' },
    codeTransformers: [indentation],
  },
  themeConfig: {
    logo,
    search: { provider: 'local', options: { miniSearch: { searchOptions: { boostDocument } } } },
    outline: [2, 3],
    nav: [
      { text: 'Documentation', link: '/docs/' },
      { text: 'Commands', link: '/docs/reference/cli' },
      { text: version, link: '/CHANGELOG' },
      ...(repository ? [{ text: 'Repository', link: repository }] : []),
    ],
    sidebar: Object.entries(sections).map(([text, items]) => ({
      text,
      ...(FOLDED.includes(text) && { collapsed: true }),
      items: [...new Set(items)].map((page) => ({ text: titleOf(page), link: pathOf(page) })),
    })),
  },
});
