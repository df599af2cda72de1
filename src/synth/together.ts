import { messageOf, OperatorError } from '../contract/error.js';
import type { Kind, Policy } from '../contract/kind.js';
import type { FlagValues } from '../contract/kind-flag.js';
import type { AnyObject } from '../contract/object.js';
import type { Finding, RenderTogether, TogetherManifest } from '../contract/render-together.js';
import type { CustomResourceInput } from './custom-resource.js';
import { fileName, kindFileName } from './output.js';
import { copyPlain } from './plain.js';
import type { Remark } from './remark.js';
import { render } from './render.js';

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
