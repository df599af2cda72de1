import type { Node } from 'yaml';
import type { Kind } from '../contract/kind.js';
import { childLabels } from '../contract/names.js';
import { describeRef, refOf } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { groupKind } from '../contract/resource.js';
import { checkDocuments, requireNamespace } from './custom-resource.js';
import type { CheckOptions, CustomResourceInput } from './custom-resource.js';
import { formatPath } from './problem.js';
import type { Remark } from './remark.js';
import { renderAll } from './render-all.js';
import { bookkeepingOf, fileOf, identityOf, isLocal, nodeOf, placeBeside } from './resource-list.js';
import type { Item, ResourceList, Result } from './resource-list.js';
import type { Rendered, TogetherOptions } from './together.js';

export type RenderListOptions = Omit<CheckOptions, 'live' | 'warn'> & TogetherOptions;

export interface RenderedList {
  /** The whole list. Where something is refused, with the items as they were. */
  readonly text: string;
  readonly problems: readonly Remark[];
  /** What else there is to say, one line each. */
  readonly notes: readonly string[];
}

/**
 * Renders the custom resources of a list, and leaves everything else in it as it is.
 *
 * What is rendered takes the place of its custom resource. One that is there for tools alone
 * (`config.kubernetes.io/local-config`) stays, and what is rendered follows it; what earlier runs have rendered of it is
 * brought up to date where it is, and removed where it isn't rendered any more.
 *
 * **Guarantees.** The same list gives the same bytes. No request is made.
 */
export async function renderList(list: ResourceList, options: RenderListOptions): Promise<RenderedList> {
  requireNamespace(options.namespace);
  const ours = oursOf(list, options.kinds);
  const warnings: string[] = [];
  const checked = await checkDocuments(
    ours.map(({ document }) => document),
    { ...options, warn: (line) => void warnings.push(line) },
  );
  const rendered: Rendered[] = [];
  const { problems, notes } = renderAll(checked.inputs, options, (each) => void rendered.push(each));
  const placed = place(list, ours, checked.inputs, rendered);
  const all = [...checked.problems, ...problems, ...placed.problems];
  const results = [
    ...all.map((problem) => resultOf(problem, 'error')),
    ...notes.map((note) => resultOf(note, 'info')),
    ...warnings.map((message) => ({ message, severity: 'warning' }) as const),
  ];
  return {
    text: list.write(all.length > 0 ? list.items.map(({ node }) => node) : placed.nodes, results),
    problems: all,
    notes: [...notes.map(({ message }) => message), ...warnings.map((line) => `warning: ${line}`)],
  };
}

/** An item that is an object. */
type ObjectItem = Item & { readonly object: AnyObject };

/** The custom resources of a list. kustomize gives a generator's configuration as an item too, and it counts once. */
function oursOf({ items, functionConfig }: ResourceList, kinds: readonly Kind[]): ObjectItem[] {
  const types = new Set(kinds.map(({ type }) => groupKind(type)));
  const isOurs = (item: Item | undefined): item is ObjectItem =>
    item?.object !== undefined && types.has(groupKind(item.object));
  const found = items.filter(isOurs);
  if (!isOurs(functionConfig)) return found;
  const known = new Set(found.map(({ object }) => identityOf(object)));
  return known.has(identityOf(functionConfig.object)) ? found : [...found, functionConfig];
}

interface Placed {
  readonly nodes: readonly Node[];
  readonly problems: readonly Remark[];
}

/** Puts what is rendered where it belongs. */
function place(
  { items }: ResourceList,
  ours: readonly ObjectItem[],
  inputs: readonly CustomResourceInput[],
  rendered: readonly Rendered[],
): Placed {
  const isObjectItem = (item: Item): item is ObjectItem => item.object !== undefined;
  const present = new Map(items.filter(isObjectItem).map((item) => [identityOf(item.object), item]));
  const updated = new Map<Item, Node>();
  const behind = new Map<Item | undefined, Node[]>();
  const problems: Remark[] = [];
  for (const part of inOrder(rendered)) {
    const source = ours.find(({ document }) => document === part.of?.document);
    const at = source && items.includes(source) ? source : undefined;
    for (const [index, object] of part.objects.entries()) {
      const earlier = present.get(identityOf(object));
      if (!earlier) {
        const near = (source ?? ours[0])?.object;
        const node = nodeOf(object, placeBeside(near, part.name, index));
        behind.set(at, [...(behind.get(at) ?? []), node]);
      } else if (isFromEarlierRun(earlier.object, part)) {
        updated.set(earlier, nodeOf(object, bookkeepingOf(earlier.object)));
      } else {
        const what = `${describeRef(refOf(object))} is rendered here, and given as well`;
        const message = `${what}; rename or remove one of them`;
        problems.push({ document: earlier.document, path: ['metadata', 'name'], message });
      }
    }
  }
  const replaced = new Set<Item>(ours.filter(({ object }) => !isLocal(object)));
  const isStale = ({ object }: Item): boolean =>
    object !== undefined && inputs.some((input) => isChildOf(object, input));
  const nodes = items.flatMap((item) => {
    const node = updated.get(item) ?? (replaced.has(item) || isStale(item) ? undefined : item.node);
    return [...(node ? [node] : []), ...(behind.get(item) ?? [])];
  });
  return { nodes: [...nodes, ...(behind.get(undefined) ?? [])], problems };
}

function inOrder(rendered: readonly Rendered[]): Rendered[] {
  return [...rendered].sort((a, b) => (a.name < b.name ? -1 : Number(a.name > b.name)));
}

/** What several custom resources share bears no labels of them, and is told by its file. */
function isFromEarlierRun(object: AnyObject, { name, of }: Rendered): boolean {
  return of ? bearsLabelsOf(object, of) : fileOf(object)?.path.split('/').at(-1) === name;
}

/** Whether it is what was rendered from a custom resource at some time. */
function isChildOf(object: AnyObject, input: CustomResourceInput): boolean {
  const { rendering } = input.kind;
  const children = 'each' in rendering ? rendering.each.children : [];
  return children.some((type) => groupKind(type) === groupKind(object)) && bearsLabelsOf(object, input);
}

function bearsLabelsOf({ metadata }: AnyObject, { kind, cr }: CustomResourceInput): boolean {
  const labels = Object.entries(childLabels(kind.type, cr.metadata.name));
  return (
    metadata.namespace === cr.metadata.namespace &&
    labels.every(([name, value]) => metadata.labels?.[name] === value)
  );
}

function resultOf({ document, path, message }: Remark, severity: Result['severity']): Result {
  const object = document?.value as AnyObject | undefined;
  const file = fileOf(object);
  return {
    message,
    severity,
    ...(object && { resourceRef: refOf(object) }),
    ...(path.length > 0 && { field: { path: formatPath(path) } }),
    ...(file && { file }),
  };
}
