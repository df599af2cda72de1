import { messageOf, OperatorError } from '../contract/error.js';
import type { Kind, Policy } from '../contract/kind.js';
import type { FlagValues } from '../contract/kind-flag.js';
import type { Finding, RenderTogether, TogetherManifest } from '../contract/render-together.js';
import { placeOf } from './custom-resource.js';
import type { CustomResourceInput } from './custom-resource.js';
import { fileName, kindFileName, manifestText } from './output.js';
import type { ManifestFile } from './output.js';
import { copyPlain } from './plain.js';
import { render } from './render.js';

export interface TogetherOptions {
  readonly policy?: Policy;
  readonly flags?: FlagValues;
}

export interface Together {
  readonly files: readonly ManifestFile[];
  /** What refuses them. */
  readonly problems: readonly string[];
  readonly notes: readonly string[];
}

/** Renders the custom resources of each kind that renders all of them at once. */
export function renderTogether(inputs: readonly CustomResourceInput[], options: TogetherOptions): Together {
  const parts = [...byKind(inputs)].map(([{ kind, together }, ofKind]) =>
    renderKind(kind, together, ofKind, options),
  );
  return {
    files: parts.flatMap(({ files }) => files),
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
    const told = (level: Finding['level']): string[] =>
      findings.filter((finding) => finding.level === level).map((finding) => sentence(finding, ordered));
    return { files: filesOf(kind, manifests), problems: told('error'), notes: told('note') };
  } catch (error) {
    const where = error instanceof OperatorError ? '' : `${kind.type.kind} can't be rendered: `;
    return { files: [], problems: [`${where}${messageOf(error)}`], notes: [] };
  }
}

/** Whatever files they come in. */
function inOrder(inputs: readonly CustomResourceInput[]): CustomResourceInput[] {
  const name = ({ kind, cr }: CustomResourceInput): string => fileName(kind.type, cr);
  return [...inputs].sort((a, b) => (name(a) < name(b) ? -1 : 1));
}

function sentence({ of, path = [], message }: Finding, inputs: readonly CustomResourceInput[]): string {
  const input = inputs.find(({ cr }) => cr === of);
  return input ? `${placeOf(input.document, path)}: ${message}` : message;
}

function filesOf(kind: Kind, manifests: readonly TogetherManifest[]): ManifestFile[] {
  const texts = new Map<string, string>();
  for (const { of, objects } of manifests) {
    const name = of ? fileName(kind.type, of) : kindFileName(kind.type);
    const text = manifestText(objects.map((object) => copyPlain(object) as typeof object));
    if (text !== '') texts.set(name, (texts.get(name) ?? '') + text);
  }
  return [...texts].map(([name, text]) => ({ name, text }));
}
