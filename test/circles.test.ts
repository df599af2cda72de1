import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import ts from 'typescript';
import { expect, test } from 'vitest';
import { repoFolder } from '../sandbox/paths.js';

/** Rooms in which there are circles still; to be emptied. */
const EXEMPT = ['contract'];

/** Returns files with those that each imports, of values and of types. */
function importGraph(root: string): Map<string, string[]> {
  const files = new Set(globSync(['src/**/*.ts', 'sandbox/**/*.ts'], { cwd: root }));
  return new Map(
    [...files].map((file) => {
      const folderOf = (name: string): string => {
        if (name.startsWith('.')) return join(root, dirname(file));
        return join(root, name.startsWith('#sandbox/') ? '' : 'src');
      };
      const { importedFiles } = ts.preProcessFile(readFileSync(join(root, file), 'utf8'));
      const imported = importedFiles.map(({ fileName }) =>
        relative(root, resolve(folderOf(fileName), fileName.replace('#', ''))).replace(/\.js$/, '.ts'),
      );
      return [file, imported.filter((other) => files.has(other))];
    }),
  );
}

/** Returns a circle, from a file back to itself; nothing where there is none. */
function circleIn(graph: ReadonlyMap<string, readonly string[]>): readonly string[] {
  const finished = new Set<string>();
  const search = (file: string, path: readonly string[]): readonly string[] | undefined => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
    if (finished.has(file)) return undefined;
    for (const other of graph.get(file) ?? []) {
      const circle = search(other, [...path, file]);
      if (circle) return circle;
    }
    finished.add(file);
    return undefined;
  };
  for (const file of graph.keys()) {
    const circle = search(file, []);
    if (circle) return circle;
  }
  return [];
}

test('a circle is found', () => {
  const graph = { a: ['b', 'c'], b: ['d'], c: ['d', 'e'], d: [], e: ['a'] };
  expect(circleIn(new Map(Object.entries(graph)))).toEqual(['a', 'c', 'e', 'a']);
});

test('no file imports itself by way of others', () => {
  const isExempt = (file: string): boolean => EXEMPT.some((room) => file.startsWith(`src/${room}/`));
  const graph = importGraph(repoFolder());
  expect(graph.get('sandbox/demo/clusters.ts')).toContain('src/values/yaml.ts');
  for (const [file, imported] of graph)
    if (isExempt(file))
      graph.set(
        file,
        imported.filter((other) => !isExempt(other)),
      );
  expect(circleIn(graph)).toEqual([]);
});
