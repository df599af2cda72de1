import { readCustomResources } from './custom-resource.js';
import type { Policy } from '../contract/kind.js';
import type { FlagValues } from '../contract/kind-flag.js';
import type { ReadOptions } from './custom-resource.js';
import { manifestText } from './output.js';
import type { ManifestFile } from './output.js';
import { InputError } from './problem.js';
import { remarkLine } from './remark.js';
import { renderAll } from './render-all.js';

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
  const texts = new Map<string, string>();
  const inputs = await readCustomResources(options);
  const { problems, notes } = renderAll(inputs, options, ({ name, objects }) => {
    const text = manifestText(objects);
    if (text !== '') texts.set(name, (texts.get(name) ?? '') + text);
  });
  if (problems.length > 0) throw new InputError(problems.map(remarkLine));
  for (const note of notes) options.note?.(remarkLine(note));
  return [...texts].map(([name, text]) => ({ name, text })).sort((a, b) => (a.name < b.name ? -1 : 1));
}
