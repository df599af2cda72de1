import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repoFolder } from '../../../sandbox/paths.js';
import { loadKinds } from '../../../src/cli/config.js';
import type { Kind } from '../../../src/contract/kind.js';
import type { AnyObject } from '../../../src/contract/object.js';
import { groupKind } from '../../../src/contract/resource.js';
import { builtInKinds } from '../../../src/kinds/index.js';
import { parseDocuments } from '../../../src/synth/document.js';

/** A custom resource in `examples/`. */
export interface Example {
  /** Its path below `examples/`. */
  readonly file: string;
  readonly kind: Kind;
  /** With a namespace, which is `default` where the file names none. */
  readonly object: AnyObject;
}

export const examplesFolder = join(repoFolder(), 'examples');

/** The configuration that brings the example's own kind, beside the built-in ones. */
export const exampleConfig = join(examplesFolder, 'scheduled-task/reconstruct.config.mjs');

/** Every kind of which there is an example. */
export async function exampleKinds(): Promise<Kind[]> {
  return loadKinds({ config: exampleConfig, builtIn: builtInKinds });
}

/** A repository by itself, with what other tools read and what is rendered, which has tests of its own. */
const REPOSITORY = 'gitops';

/** Returns all custom resources of these kinds in `examples/`, by file. */
export function allExamples(kinds: readonly Kind[]): Example[] {
  const exclude = [`${REPOSITORY}/**`];
  const files = globSync('**/*.{yaml,yml,json}', { cwd: examplesFolder, exclude }).sort();
  return files.flatMap((file) =>
    documentsOf(file).flatMap((object) => {
      const { apiVersion = '', kind: name = '' } = object as Partial<AnyObject>;
      const kind = kinds.find(({ type }) => groupKind(type) === groupKind({ apiVersion, kind: name }));
      return kind ? [{ file, kind, object: withNamespace(object) }] : [];
    }),
  );
}

/** The only document of a file below `examples/`. */
export function exampleDocument(file: string): AnyObject {
  const [only] = documentsOf(file);
  if (!only) throw new Error(`${file} holds nothing`);
  return only;
}

function documentsOf(file: string): AnyObject[] {
  const text = readFileSync(join(examplesFolder, file), 'utf8');
  const documents = parseDocuments({ name: file, text }, (problem) => {
    throw new Error(problem);
  });
  return documents.map(({ value }) => value as AnyObject);
}

function withNamespace(object: AnyObject): AnyObject {
  return { ...object, metadata: { ...object.metadata, namespace: object.metadata.namespace ?? 'default' } };
}
