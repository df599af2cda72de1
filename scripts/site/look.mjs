// Looks at the built site as a browser shows it: `npm run docs -- look [FOLDER]` writes pictures of every page, as wide as a desktop and
// as a phone, to dist/look/ or the folder, and fails where a page is wider than its window, or something in it is cut off and doesn't
// show that it scrolls.
import { createReadStream, existsSync, globSync, mkdirSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, resolve } from 'node:path';
import chromium from '@sparticuz/chromium';
import puppeteer from 'puppeteer-core';

const root = resolve(import.meta.dirname, '../..');
const site = join(root, 'dist/docs');
const out = resolve(process.argv[2] ?? join(root, 'dist/look'));
const widths = { desktop: 1280, phone: 390 };
const types = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' };
/** Finds what is wider than its box without the shadows of the style, whose background scrolls along. */
const CUT = `[...document.querySelectorAll('.vp-doc *')]
  .filter((each) => each.clientWidth > 0 && each.scrollWidth > each.clientWidth + 1)
  .filter((each) => getComputedStyle(each).overflowX !== 'visible')
  .filter((each) => !getComputedStyle(each).backgroundAttachment.includes('local'))
  .map((each) => each.tagName.toLowerCase() + ': ' + each.innerText.slice(0, 60))`;
const paths = globSync('**/*.html', { cwd: site })
  .filter((path) => path !== '404.html')
  .sort();
if (paths.length === 0) throw new Error(`No page is in ${site}: run "npm run docs" first`);
mkdirSync(out, { recursive: true });

const server = createServer(({ url }, response) => {
  const path = decodeURIComponent(new URL(url, 'http://localhost').pathname);
  const file = [path, `${path}.html`, `${path}index.html`]
    .map((name) => join(site, name))
    .find((name) => name.startsWith(site) && extname(name) && existsSync(name));
  response.writeHead(file ? 200 : 404, {
    'content-type': types[extname(file ?? '')] ?? 'application/octet-stream',
  });
  if (file) createReadStream(file).pipe(response);
  else response.end();
});
await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
const { port } = server.address();

const browser = await puppeteer.launch({
  ...{ args: chromium.args, executablePath: await chromium.executablePath(), headless: 'shell' },
});
const problems = [];
try {
  const page = await browser.newPage();
  page.on('pageerror', (error) => problems.push(`${page.url()}: ${error.message}`));
  for (const path of paths)
    for (const [name, width] of Object.entries(widths)) {
      await page.setViewport({ width, height: 900 });
      await page.goto(`http://127.0.0.1:${port}/${path.replace(/(index)?\.html$/, '')}`, {
        waitUntil: 'load',
      });
      const wide = await page.evaluate('document.documentElement.scrollWidth');
      if (wide > width) problems.push(`${path}: ${wide} px wide on a ${name} of ${width} px`);
      for (const cut of await page.evaluate(CUT))
        problems.push(`${path}: cut off on a ${name}: ${JSON.stringify(cut)}`);
      await page.screenshot({
        path: join(out, `${path.replaceAll('/', '-').replace('.html', '')}.${name}.png`),
      });
    }
  process.stdout.write(`${paths.length} pages, pictures in ${out}\n`);
} finally {
  await browser.close();
  server.close();
}
for (const problem of problems) process.stderr.write(`${problem}\n`);
if (problems.length > 0) process.exitCode = 1;
