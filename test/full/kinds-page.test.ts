import { execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { repoFolder } from '../../sandbox/paths.js';

const root = repoFolder();

test('what the page on kinds says of classes by cdk8s import makes them ones that Node loads, with their types', () => {
  const [, command] = /^```bash\n(.*)\n```$/m.exec(readFileSync(join(root, 'docs/kinds.md'), 'utf8'))!;
  const folder = mkdtempSync(join(tmpdir(), 'imports-'));
  try {
    mkdirSync(join(folder, 'imports'));
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
    // Those of a CRD, with enums too; `cdk8s import k8s` asks the network.
    cpSync(join(root, 'imports/batch.my.github.com.ts'), join(folder, 'imports/k8s.ts'));

    const options = { cwd: folder, encoding: 'utf8' } as const;
    execFileSync('sh', ['-c', command!], { ...options, env: { ...process.env, NODE_OPTIONS: '' } });

    const of = (extension: string): boolean => existsSync(join(folder, `imports/k8s.${extension}`));
    expect({ js: of('js'), types: of('d.ts'), source: of('ts') }).toEqual({
      js: true,
      types: true,
      source: false,
    });
    const names = "import('./imports/k8s.js').then((all) => console.log(Object.keys(all).join()))";
    expect(execFileSync(process.execPath, ['-e', names], options)).toContain('JobWatcher');
  } finally {
    rmSync(folder, { recursive: true });
  }
}, 180_000);
