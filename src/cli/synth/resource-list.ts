import { isMap, isScalar, isSeq } from 'yaml';
import type { Node } from 'yaml';
import type { Kind } from '../../contract/kind.js';
import { childLabels } from '../../contract/names.js';
import { describeRef, objectId, refOf } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import { groupKind } from '../../contract/resource.js';
import { writeYaml } from '../../values/yaml.js';
import { checkDocuments, requireNamespace } from '../../validate/custom-resource.js';
import type { CheckOptions, CustomResourceInput } from '../../validate/custom-resource.js';
import { parseOne } from '../../validate/document.js';
import type { Document, Remark } from '../../validate/document.js';
import { InputError } from '../../validate/problem.js';
import { showValue, formatPath } from '../../values/path.js';
import { renderAll } from './synth.js';
import type { Rendered, RenderOptions } from './synth.js';

/**
 * Lists that orchestrators of KRM functions, such as kustomize and kpt, hand to a function and take from it.
 * @see https://github.com/kubernetes-sigs/kustomize/blob/master/cmd/config/docs/api-conventions/functions-spec.md
 */
const API_VERSION = 'config.kubernetes.io/v1';
const API_VERSIONS: readonly unknown[] = [API_VERSION, `${API_VERSION}beta1`, `${API_VERSION}alpha1`];

/** The names that the annotations for file and place in it have, and had. */
const PREFIXES = ['internal.config.kubernetes.io/', 'config.kubernetes.io/'] as const;
const LOCAL = 'config.kubernetes.io/local-config';

interface Item {
  /** Undefined for what isn't an object. */
  readonly object: AnyObject | undefined;
  readonly document: Document;
  /** The item as it was given, with its comments. */
  readonly node: Node;
}

export interface ResourceList {
  readonly items: readonly Item[];
  readonly functionConfig?: Item;
  write(items: readonly Node[], results: readonly Result[]): string;
}

/** Message, as the specification has it. */
export interface Result {
  readonly message: string;
  readonly severity: 'error' | 'warning' | 'info';
  readonly resourceRef?: object;
  readonly field?: { readonly path: string };
  readonly file?: { readonly path: string; readonly index?: number };
}

/** @throws InputError for what is no ResourceList */
export function parseResourceList(text: string): ResourceList {
  const refusal = (message: string): InputError => new InputError([`<stdin>: ${message}`]);
  const remedy = 'as kustomize and kpt do, or use synth for files';
  if (text.trim() === '') throw refusal(`standard input is empty; give a ResourceList, ${remedy}`);
  const read = parseOne(text);
  if ('problem' in read) throw refusal(read.problem);
  const { yaml } = read;
  const list = read.value as Readonly<Record<string, unknown>> | null;
  const { apiVersion, kind } = list ?? {};
  if (kind !== 'ResourceList' || !API_VERSIONS.includes(apiVersion))
    throw refusal(
      `holds ${showValue(kind)} of ${showValue(apiVersion)}; give a ResourceList of ${API_VERSION}, ${remedy}`,
    );
  const given = yaml.get('items');
  const items = isSeq<Node>(given) ? given : undefined;
  if ((list?.items ?? null) !== null && !items) throw refusal('items is not a list');
  const values = (list?.items ?? []) as readonly unknown[];
  const config = yaml.get('functionConfig');
  return {
    items: (items?.items ?? []).map((node, index) => itemOf(values[index], node, `items[${index}]`)),
    ...(isMap(config) && { functionConfig: itemOf(list?.functionConfig, config, 'functionConfig') }),
    write: (written, results) => {
      const seq = items ?? yaml.createNode<Node[]>([]);
      seq.items = written.map(withCommentInside);
      seq.flow = false;
      yaml.set('items', seq);
      if (results.length > 0) yaml.set('results', nodeIn(writeYaml(results)));
      else yaml.delete('results');
      return yaml.toString({ lineWidth: 0 });
    },
  };
}

/**
 * A comment in front of an object stands between its dash and its first field, as Go's parser wants it: before the dash it is
 * taken for another one, and doubled by tools that copy comments from input to output.
 */
function withCommentInside(node: Node): Node {
  const first = isMap(node) ? node.items[0]?.key : undefined;
  if (!isScalar(first) || typeof node.commentBefore !== 'string') return node;
  first.commentBefore = [node.commentBefore, first.commentBefore].filter(Boolean).join('\n');
  node.commentBefore = null;
  node.spaceBefore = false;
  return node;
}

function itemOf(value: unknown, node: Node, name: string): Item {
  const { apiVersion, kind, metadata } = (value ?? {}) as Partial<Record<string, unknown>>;
  const isObject =
    typeof apiVersion === 'string' && typeof kind === 'string' && typeof metadata === 'object' && metadata;
  const object = isObject ? (value as AnyObject) : undefined;
  const file = fileOf(object);
  const document = {
    file: file?.path ?? (object ? describeRef(object) : name),
    index: file?.index === undefined ? 0 : file.index + 1,
    ...{ path: [], value, lineOf: () => 0 },
  };
  return { object, document, node };
}

function fileOf(object: AnyObject | undefined): Result['file'] {
  const annotations: Readonly<Record<string, unknown>> = object?.metadata.annotations ?? {};
  const [path, index] = ['path', 'index'].map((name) =>
    PREFIXES.map((prefix) => annotations[prefix + name]).find((value) => value !== undefined),
  );
  if (typeof path !== 'string') return undefined;
  return { path, ...(typeof index === 'string' && /^\d+$/.test(index) && { index: Number(index) }) };
}

/** The annotations that put an object into a file beside another one; none where that one is in no file. */
function placeBeside(
  object: AnyObject | undefined,
  name: string,
  index: number,
): Readonly<Record<string, string>> {
  const file = fileOf(object);
  if (!file) return {};
  const path = file.path.slice(0, file.path.lastIndexOf('/') + 1) + name;
  const used = PREFIXES.filter((prefix) => object?.metadata.annotations?.[`${prefix}path`] !== undefined);
  const pairs = used.map((prefix) => ({ [`${prefix}path`]: path, [`${prefix}index`]: String(index) }));
  return Object.assign({}, ...pairs) as Record<string, string>;
}

/** Returns what orchestrators keep in an object's annotations for themselves, such as its file. */
function bookkeepingOf(object: AnyObject): Readonly<Record<string, string>> {
  const all = Object.entries(object.metadata.annotations ?? {});
  return Object.fromEntries(
    all.filter(([name]) => /^((internal|kustomize)\.)?config\.(kubernetes|k8s)\.io\//.test(name)),
  );
}

function nodeOf(object: AnyObject, annotations: Readonly<Record<string, string>>): Node {
  const { apiVersion, kind, metadata, ...rest } = object;
  const merged = { ...metadata.annotations, ...annotations };
  const placed = { ...metadata, ...(Object.keys(merged).length > 0 && { annotations: merged }) };
  return nodeIn(writeYaml({ apiVersion, kind, metadata: placed, ...rest }));
}

function nodeIn(text: string): Node {
  const read = parseOne(text);
  if ('problem' in read || read.yaml.contents === null) throw new Error(`${text} is no YAML`);
  return read.yaml.contents;
}

export type RenderListOptions = Omit<CheckOptions, 'live' | 'warn'> & RenderOptions;

export interface RenderedList {
  /** The whole list. Where something is refused, with the items as they were. */
  readonly text: string;
  readonly problems: readonly Remark[];
  /** Notes of one line each. */
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
  const references = list.items.filter((item) => !ours.includes(item as ObjectItem));
  const inputs = { ...options, references: references.flatMap(({ object }) => object ?? []) };
  const { problems, notes } = renderAll(checked.inputs, inputs, (each) => void rendered.push(each));
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

type ObjectItem = Item & { readonly object: AnyObject };

/** The custom resources of a list. kustomize gives a generator's configuration as an item too, and it counts once. */
function oursOf({ items, functionConfig }: ResourceList, kinds: readonly Kind[]): ObjectItem[] {
  const types = new Set(kinds.map(({ type }) => groupKind(type)));
  const isOurs = (item: Item | undefined): item is ObjectItem =>
    item?.object !== undefined && types.has(groupKind(item.object));
  const found = items.filter(isOurs);
  if (!isOurs(functionConfig)) return found;
  const known = new Set(found.map(({ object }) => objectId(object)));
  return known.has(objectId(functionConfig.object)) ? found : [...found, functionConfig];
}

function place(
  { items }: ResourceList,
  ours: readonly ObjectItem[],
  inputs: readonly CustomResourceInput[],
  rendered: readonly Rendered[],
): { readonly nodes: readonly Node[]; readonly problems: readonly Remark[] } {
  const isObjectItem = (item: Item): item is ObjectItem => item.object !== undefined;
  const present = new Map(items.filter(isObjectItem).map((item) => [objectId(item.object), item]));
  const updated = new Map<Item, Node>();
  const behind = new Map<Item | undefined, Node[]>();
  const problems: Remark[] = [];
  for (const part of [...rendered].sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const source = ours.find(({ document }) => document === part.of?.document);
    const at = source && items.includes(source) ? source : undefined;
    for (const [index, object] of part.objects.entries()) {
      const earlier = present.get(objectId(object));
      if (!earlier) {
        const near = (source ?? ours[0])?.object;
        const node = nodeOf(object, placeBeside(near, part.name, index));
        behind.set(at, [...(behind.get(at) ?? []), node]);
      } else if (isFromEarlierRun(earlier.object, part)) {
        updated.set(earlier, nodeOf(object, bookkeepingOf(earlier.object)));
      } else {
        const what = `${describeRef(object)} is rendered here, and given as well`;
        const message = `${what}; rename or remove one of them`;
        problems.push({ document: earlier.document, path: ['metadata', 'name'], message });
      }
    }
  }
  // What is there for tools alone isn't applied, and stays.
  const isLocal = ({ metadata }: AnyObject): boolean =>
    (metadata.annotations?.[LOCAL] ?? 'false') !== 'false';
  const replaced = new Set<Item>(ours.filter(({ object }) => !isLocal(object)));
  const isStale = ({ object }: Item): boolean =>
    object !== undefined && inputs.some((input) => isChildOf(object, input));
  const nodes = items.flatMap((item) => {
    const node = updated.get(item) ?? (replaced.has(item) || isStale(item) ? undefined : item.node);
    return [...(node ? [node] : []), ...(behind.get(item) ?? [])];
  });
  return { nodes: [...nodes, ...(behind.get(undefined) ?? [])], problems };
}

/** Reports whether an object is of an earlier run. One that several custom resources share has no labels of theirs, and goes by its file. */
function isFromEarlierRun(object: AnyObject, { name, of }: Rendered): boolean {
  return of ? bearsLabelsOf(object, of) : fileOf(object)?.path.split('/').at(-1) === name;
}

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
