import { messageOf, OperatorError } from '../contract/error.js';
import { placeOf, readCustomResources } from './custom-resource.js';
import type { Policy } from '../contract/kind.js';
import type { FlagValues } from '../contract/kind-flag.js';
import type { CustomResourceInput, ReadOptions } from './custom-resource.js';
import { fileName, manifestText } from './output.js';
import type { ManifestFile } from './output.js';
import { InputError } from './problem.js';
import { render } from './render.js';
import { renderTogether } from './together.js';

export interface SynthOptions extends ReadOptions {
  /** What an admin allows. @default - everything */
  readonly policy?: Policy;
  /** The values of the kinds' flags. @default - none is given */
  readonly flags?: FlagValues;
  /** Takes one line for each thing that kinds have to say of what was rendered. @default - it isn't told */
  readonly note?: (line: string) => void;
}

/**
 * Renders custom resources to manifests, in memory: reads, validates and renders all of them or fails.
 *
 * **Guarantees.** The same documents give the same bytes, in whatever order and files they come. No request is
 * made. Nothing is written.
 *
 * @returns one file per custom resource that renders to something, and one per kind for what several of them share,
 * sorted by name
 * @throws InputError with every problem of every document
 */
export async function synth(options: SynthOptions): Promise<ManifestFile[]> {
  const files: ManifestFile[] = [];
  const problems: string[] = [];
  const inputs = await readCustomResources(options);
  for (const input of inputs) {
    if (!('each' in input.kind.rendering)) continue;
    try {
      const text = manifestText(render(input.kind.rendering.each, input.cr, options.policy));
      if (text !== '') files.push({ name: fileName(input.kind.type, input.cr), text });
    } catch (error) {
      problems.push(explain(input, error));
    }
  }
  const together = renderTogether(inputs, options);
  files.push(...together.files);
  problems.push(...together.problems);
  if (problems.length > 0) throw new InputError(problems);
  for (const note of together.notes) options.note?.(note);
  return files.sort((a, b) => (a.name < b.name ? -1 : 1));
}

function explain({ document }: CustomResourceInput, error: unknown): string {
  return `${placeOf(document, error instanceof OperatorError ? error.path : [])}: ${messageOf(error)}`;
}
