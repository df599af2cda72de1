import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ts from 'typescript';
import { expect, test } from 'vitest';
import { repoFolder } from '../../sandbox/paths.js';
import { filesIn } from '../support/pages.js';

const root = repoFolder();
const kind = filesIn(readFileSync(join(root, 'docs/coming-from.md'), 'utf8')).get('memcached.ts')!;

test('the kind of docs/coming-from.md compiles for Node, which only strips types, and its schema is its type', () => {
  const misspelt = kind.replace('spec.size', 'spec.sise');

  expect(complaints({ 'memcached.ts': kind, 'misspelt.ts': misspelt })).toEqual([
    expect.stringMatching(/^misspelt\.ts: Property 'sise' does not exist/),
  ]);
});

test('the code of docs/in-a-chart.md compiles', () => {
  const files = filesIn(readFileSync(join(root, 'docs/in-a-chart.md'), 'utf8'));
  const modules = [...files].filter(([name]) => name.endsWith('.ts'));

  expect(modules.length).toBeGreaterThan(0);
  expect(complaints(Object.fromEntries(modules))).toEqual([]);
});

/** What the compiler says of the modules of an author's project, by their names. */
function complaints(modules: Readonly<Record<string, string>>): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'shown-'));
  try {
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
    mkdirSync(join(folder, 'node_modules'));
    for (const name of ['cdk8s', 'constructs'])
      symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name));
    for (const [name, text] of Object.entries(modules)) writeFileSync(join(folder, name), text);
    const names = Object.keys(modules);
    const program = ts.createProgram(
      names.map((name) => join(folder, name)),
      options,
    );
    return names.flatMap((name) =>
      ts
        .getPreEmitDiagnostics(program, program.getSourceFile(join(folder, name)))
        .map(({ messageText }) => `${name}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`),
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const options: ts.CompilerOptions = {
  ...{ module: ts.ModuleKind.NodeNext, target: ts.ScriptTarget.ES2023, strict: true, noEmit: true },
  ...{ erasableSyntaxOnly: true, verbatimModuleSyntax: true, skipLibCheck: true },
  allowImportingTsExtensions: true,
  ...{ types: ['node'], typeRoots: [join(root, 'node_modules/@types')] },
  paths: {
    'cdk8s-reconstruct': [join(root, 'src/index.ts')],
    'cdk8s-reconstruct/kinds': [join(root, 'src/kinds/index.ts')],
  },
};
