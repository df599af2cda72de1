import { messageOf, OperatorError } from '../contract/error.js';
import type {
  FlagValues,
  Policy,
  Kind,
  Finding,
  RenderTogether,
  TogetherManifest,
} from '../contract/kind.js';
import type { AnyObject } from '../contract/object.js';
import { readCustomResources } from './custom-resource.js';
import type { ReadOptions, CustomResourceInput } from './custom-resource.js';
import { manifestText, fileName, kindFileName } from './output.js';
import type { ManifestFile } from './output.js';
import { copyPlain, render } from './render.js';
import { InputError } from './problem.js';
import { remarkLine } from './document.js';
import type { Remark } from './document.js';

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

/**
 * Renders custom resources, each through its construct or all of a kind at once.
 * @param written takes what is rendered, as it comes, so that not all of it need be kept
 * @returns what there is to say
 */
export function renderAll(
  inputs: readonly CustomResourceInput[],
  options: TogetherOptions,
  written: (rendered: Rendered) => void,
): Omit<Together, 'rendered'> {
  const problems: Remark[] = [];
  for (const input of inputs) {
    const { kind, cr, document } = input;
    if (!('each' in kind.rendering)) continue;
    try {
      const objects = render(kind.rendering.each, cr, options.policy);
      written({ name: fileName(kind.type, cr), of: input, objects });
    } catch (error) {
      const path = error instanceof OperatorError ? error.path : [];
      problems.push({ document, path, message: messageOf(error) });
    }
  }
  const together = renderTogether(inputs, options);
  for (const rendered of together.rendered) written(rendered);
  return { problems: [...problems, ...together.problems], notes: together.notes };
}

export interface TogetherOptions {
  readonly policy?: Policy;
  readonly flags?: FlagValues;
}

/** The objects that one file holds. */
export interface Rendered {
  /** The name of the file. */
  readonly name: string;
  /** What they are rendered from. @default - several custom resources share them */
  readonly of?: CustomResourceInput;
  readonly objects: readonly AnyObject[];
}

export interface Together {
  readonly rendered: readonly Rendered[];
  /** What refuses them. */
  readonly problems: readonly Remark[];
  readonly notes: readonly Remark[];
}

/** Renders the custom resources of each kind that renders all of them at once. */
export function renderTogether(inputs: readonly CustomResourceInput[], options: TogetherOptions): Together {
  const parts = [...byKind(inputs)].map(([{ kind, together }, ofKind]) =>
    renderKind(kind, together, ofKind, options),
  );
  return {
    rendered: parts.flatMap(({ rendered }) => rendered),
    problems: parts.flatMap(({ problems }) => problems),
    notes: parts.flatMap(({ notes }) => notes),
  };
}

interface KindTogether {
  readonly kind: Kind;
  readonly together: RenderTogether;
}

function byKind(inputs: readonly CustomResourceInput[]): Map<KindTogether, CustomResourceInput[]> {
  const kinds = new Map<Kind, CustomResourceInput[]>();
  for (const input of inputs) kinds.set(input.kind, [...(kinds.get(input.kind) ?? []), input]);
  const found = [...kinds].flatMap(([kind, ofKind]) =>
    'together' in kind.rendering ? [[{ kind, together: kind.rendering.together }, ofKind] as const] : [],
  );
  return new Map(found);
}

function renderKind(
  kind: Kind,
  together: RenderTogether,
  inputs: readonly CustomResourceInput[],
  { policy, flags }: TogetherOptions,
): Together {
  const section = policy?.[kind.type.kind.toLowerCase()];
  const context = {
    render: (...[rendered, cr]: Parameters<typeof render>) => render(rendered, cr, policy),
    ...(flags && { flags }),
    ...(section !== undefined && { policy: section }),
  };
  const ordered = inOrder(inputs);
  try {
    const { manifests, findings = [] } = together(
      ordered.map(({ cr }) => cr),
      context,
    );
    const told = (level: Finding['level']): Remark[] =>
      findings.filter((finding) => finding.level === level).map((finding) => remark(finding, ordered));
    return {
      rendered: manifests.map((manifest) => renderedOf(kind, manifest, ordered)),
      problems: told('error'),
      notes: told('note'),
    };
  } catch (error) {
    const where = error instanceof OperatorError ? '' : `${kind.type.kind} can't be rendered: `;
    return { rendered: [], problems: [{ path: [], message: `${where}${messageOf(error)}` }], notes: [] };
  }
}

/** Whatever files they come in. */
function inOrder(inputs: readonly CustomResourceInput[]): CustomResourceInput[] {
  const name = ({ kind, cr }: CustomResourceInput): string => fileName(kind.type, cr);
  return [...inputs].sort((a, b) => (name(a) < name(b) ? -1 : 1));
}

function remark({ of, path = [], message }: Finding, inputs: readonly CustomResourceInput[]): Remark {
  const input = inputs.find(({ cr }) => cr === of);
  return input ? { document: input.document, path, message } : { path: [], message };
}

function renderedOf(
  kind: Kind,
  { of, objects }: TogetherManifest,
  inputs: readonly CustomResourceInput[],
): Rendered {
  const input = inputs.find(({ cr }) => cr === of);
  return {
    name: of ? fileName(kind.type, of) : kindFileName(kind.type),
    ...(input && { of: input }),
    objects: objects.map((object) => copyPlain(object) as AnyObject),
  };
}
