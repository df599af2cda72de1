import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repoFolder } from '../../sandbox/paths.js';
import { loadKinds } from '../../src/cli/config.js';
import type { Kind } from '../../src/contract/kind.js';
import type { AnyObject } from '../../src/contract/object.js';
import { groupKind } from '../../src/contract/resource.js';
import { builtInKinds } from '../../src/kinds/index.js';
import { parseDocuments } from '../../src/validate/document.js';

/** A custom resource in `examples/`. */
export interface Example {
  /** Path below `examples/`. */
  readonly file: string;
  readonly kind: Kind;
  /** With a namespace, which is `default` where the file names none. */
  readonly object: AnyObject;
}

export const examplesFolder = join(repoFolder(), 'examples');

/** Configuration that brings the example's own kind, beside the built-in ones. */
export const exampleConfig = join(examplesFolder, 'scheduled-task/reconstruct.config.mjs');

/** Loads every kind of which there is an example. */
export async function exampleKinds(): Promise<Kind[]> {
  return loadKinds({ config: exampleConfig, builtIn: builtInKinds });
}

/** Returns all custom resources of these kinds in `examples/`, by file, but for those of its repository for GitOps. */
export function allExamples(kinds: readonly Kind[]): Example[] {
  const options = { cwd: examplesFolder, exclude: ['gitops/**'] };
  const files = globSync('**/*.{yaml,yml,json}', options).sort();
  return files.flatMap((file) =>
    documentsOf(file).flatMap((object) => {
      const { apiVersion = '', kind: name = '', metadata } = object;
      const kind = kinds.find(({ type }) => groupKind(type) === groupKind({ apiVersion, kind: name }));
      const namespaced = {
        ...object,
        metadata: { ...metadata, namespace: metadata?.namespace ?? 'default' },
      };
      return kind ? [{ file, kind, object: namespaced as AnyObject }] : [];
    }),
  );
}

/** Reads the first document of a file below `examples/`. */
export function exampleDocument(file: string): AnyObject {
  return documentsOf(file)[0] as AnyObject;
}

function documentsOf(file: string): Partial<AnyObject>[] {
  const text = readFileSync(join(examplesFolder, file), 'utf8');
  const documents = parseDocuments({ name: file, text }, (problem) => {
    throw new Error(problem);
  });
  return documents.map(({ value }) => value as Partial<AnyObject>);
}
