import { messageOf, OperatorError } from '../contract/error.js';
import { placeOf, readCustomResources } from './custom-resource.js';
import type { Policy } from '../contract/kind.js';
import type { CustomResourceInput, ReadOptions } from './custom-resource.js';
import { fileName, manifestText } from './output.js';
import type { ManifestFile } from './output.js';
import { InputError } from './problem.js';
import { render } from './render.js';

export interface SynthOptions extends ReadOptions {
  /** What an admin allows. @default - everything */
  readonly policy?: Policy;
}

/**
 * Renders custom resources to manifests, in memory: reads, validates and renders all of them or fails.
 *
 * **Guarantees.** The same documents give the same bytes, in whatever order and files they come. No request is
 * made. Nothing is written.
 *
 * @returns one file per custom resource that renders to something, sorted by name
 * @throws InputError with every problem of every document
 */
export async function synth(options: SynthOptions): Promise<ManifestFile[]> {
  const files: ManifestFile[] = [];
  const problems: string[] = [];
  for (const input of await readCustomResources(options)) {
    try {
      const text = manifestText(render(input.kind, input.cr, options.policy));
      if (text !== '') files.push({ name: fileName(input.kind.type, input.cr), text });
    } catch (error) {
      problems.push(explain(input, error));
    }
  }
  if (problems.length > 0) throw new InputError(problems);
  return files.sort((a, b) => (a.name < b.name ? -1 : 1));
}

function explain({ document }: CustomResourceInput, error: unknown): string {
  return `${placeOf(document, error instanceof OperatorError ? error.path : [])}: ${messageOf(error)}`;
}
