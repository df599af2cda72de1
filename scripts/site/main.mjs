// The documentation site. `npm run docs` builds it to dist/docs/, `npm run docs -- dev` serves it on loopback as it is edited, and
// `npm run docs -- look` takes pictures of every page in a real browser, and fails where one is wider than its window or cuts something off.
// Its packages are its own, which no other command installs.
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = dirname(fileURLToPath(import.meta.url));
const [task = 'build', ...rest] = process.argv.slice(2);
const tasks = {
  build: { needs: 'vitepress', command: ['node_modules/vitepress/bin/vitepress.js', 'build'] },
  dev: {
    needs: 'vitepress',
    command: ['node_modules/vitepress/bin/vitepress.js', 'dev', '--host', '127.0.0.1'],
  },
  look: { needs: 'puppeteer-core', command: ['look.mjs'] },
};
if (!Object.hasOwn(tasks, task)) {
  process.stderr.write(`There is no ${task}; there are ${Object.keys(tasks).join(', ')}\n`);
  process.exit(2);
}

const { needs, command } = tasks[task];
if (!isInstalled(needs)) {
  const omit = needs === 'vitepress' ? ['--omit=dev'] : [];
  process.stderr.write('> Installing what builds the site (once; a minute or less)\n');
  execFileSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error', ...omit], {
    ...{ cwd: folder, stdio: 'inherit', timeout: 10 * 60_000 },
  });
}
spawn(process.execPath, [...command, ...rest], { cwd: folder, stdio: 'inherit' }).once('exit', (code) => {
  process.exitCode = code ?? 1;
  if (task === 'build' && code === 0)
    process.stdout.write(
      'The site is in dist/docs/, for any web server. To read it here, and see edits as you save: npm run docs -- dev\n',
    );
});

/** Reports whether a package is there, in the version of the lock file. */
function isInstalled(name) {
  const at = (file) => JSON.parse(readFileSync(join(folder, file), 'utf8'));
  const path = `node_modules/${name}`;
  const manifest = `${path}/package.json`;
  return (
    existsSync(join(folder, manifest)) &&
    at(manifest).version === at('package-lock.json').packages[path].version
  );
}
