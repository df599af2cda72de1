import { messageOf, OperatorError } from '../../contract/error.js';
import { contributedType } from '../../contract/kind.js';
import type { AdminFiles, FlagValues, Finding, Kind } from '../../contract/kind.js';
import { describeRef, objectId, refOf } from '../../contract/object.js';
import type { AnyObject, CustomResource } from '../../contract/object.js';
import { readCustomResources } from '../../validate/custom-resource.js';
import type { ReadOptions, CustomResourceInput } from '../../validate/custom-resource.js';
import { remarkLine } from '../../validate/document.js';
import type { Document, Remark } from '../../validate/document.js';
import { manifestText, fileName, kindFileName } from '../../validate/output.js';
import type { ManifestFile } from '../../validate/output.js';
import { InputError } from '../../validate/problem.js';
import { isObject, objectsOf, offlineInputs } from '../../render/references.js';
import { groupKind } from '../../contract/resource.js';
import { copyPlain } from '../../render/synthesize.js';
import { render } from '../../render/renderer.js';

export interface RenderOptions {
  /** Objects that custom resources may refer to, beside each other. @default - none */
  readonly references?: readonly AnyObject[];
  /** Files of the admin. @default - none is given */
  readonly files?: AdminFiles;
  /** Values of the kinds' flags. @default - none is given */
  readonly flags?: FlagValues;
}

export interface SynthOptions extends ReadOptions, RenderOptions {
  /** Takes one line for each thing that kinds have to say of what was rendered. @default - not shown */
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
  const referred: Document[] = [];
  const isReferred = referredBy(options.kinds);
  const takes = (document: Document): boolean => isReferred(document.value) && referred.push(document) > 0;
  const inputs = await readCustomResources({ ...options, takes });
  const references = [...(options.references ?? []), ...objectsOf(referred)];
  const { problems, notes } = renderAll(inputs, { ...options, references }, ({ name, objects }) => {
    const text = manifestText(objects);
    if (text !== '') texts.set(name, (texts.get(name) ?? '') + text);
  });
  if (problems.length > 0) throw new InputError(problems.map(remarkLine));
  for (const note of notes) options.note?.(remarkLine(note));
  return [...texts].map(([name, text]) => ({ name, text })).sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Returns a function that reports whether a value is an object that kinds refer to, and of none of them. */
function referredBy(kinds: readonly Kind[]): (value: unknown) => boolean {
  const own = new Set(kinds.map(({ type }) => groupKind(type)));
  const lookups = kinds.flatMap(({ rendering }) =>
    'each' in rendering ? (rendering.each.references?.lookups ?? []) : [],
  );
  const types = new Set(lookups.map(({ type }) => groupKind(type)).filter((type) => !own.has(type)));
  return (value) => isObject(value) && types.has(groupKind(value));
}

/** Objects that one file holds. */
export interface Rendered {
  readonly name: string;
  /** The custom resource that they are rendered from. @default - several share them */
  readonly of?: CustomResourceInput;
  readonly objects: readonly AnyObject[];
}

/**
 * Renders custom resources, each through its construct or all of a kind at once.
 * @param written takes what is rendered, as it comes, so that not all of it need be kept
 * @returns what refuses them, and what else there is to say
 */
export function renderAll(
  inputs: readonly CustomResourceInput[],
  options: RenderOptions,
  written: (rendered: Rendered) => void,
): { readonly problems: readonly Remark[]; readonly notes: readonly Remark[] } {
  const problems: Remark[] = [];
  const notes: Remark[] = [];
  const references = [
    ...(options.references ?? []),
    ...inputs.map(({ cr }) => cr as CustomResource & AnyObject),
  ];
  const makers = new Map<string, string>();
  const silent: string[] = [];
  const byKind = Map.groupBy(inputs, ({ kind }) => kind);
  for (const [kind, ofKind] of byKind) {
    const name = kind.type.kind;
    if ('each' in kind.rendering) {
      const each = kind.rendering.each;
      for (const input of ofKind) {
        const { cr, document } = input;
        try {
          const rendered = render(each, cr, offlineInputs(each, cr, { ...options.files, references }));
          const isForeign = (object: AnyObject): boolean => contributedType(each, object) !== undefined;
          const objects = rendered.filter((object) => !isForeign(object));
          for (const object of rendered.filter(isForeign))
            notes.push({
              document,
              path: [],
              message: `${describeRef(object)} isn't rendered: it belongs to others, and the operator sets fields of it`,
            });
          refuseTwins(makers, describeRef({ ...refOf(cr), kind: name }), objects);
          written({ name: fileName(kind.type, cr), of: input, objects });
          if (!each.generated) continue;
          const { secretName } = each.generated.propsOf(cr);
          notes.push({
            document,
            path: [],
            message: `Secret ${secretName} isn't rendered: the operator makes its values`,
          });
        } catch (error) {
          const path = error instanceof OperatorError ? error.path : [];
          problems.push({ document, path, message: messageOf(error) });
        }
      }
      if (each.observes)
        notes.push({
          path: [],
          message: `${name}: what depends on the status of its children is pending; it is rendered as if there were none yet`,
        });
      continue;
    }
    try {
      let made = 0;
      const findings = renderKind(kind, ofKind, options, (rendered) => {
        made++;
        written(rendered);
      });
      for (const [level, remark] of findings) (level === 'error' ? problems : notes).push(remark);
      if (made + findings.length === 0) silent.push(name);
    } catch (error) {
      const where = error instanceof OperatorError ? '' : `${name} can't be rendered: `;
      problems.push({ path: [], message: `${where}${messageOf(error)}` });
    }
  }
  // Beside others it may be given by the way; alone, nothing would come of it.
  const refusing = silent.length < byKind.size ? notes : problems;
  const message = `${silent.join(', ')}: renders no objects: its controllers make them in a cluster; leave it out here`;
  if (silent.length > 0) refusing.push({ path: [], message });
  return { problems, notes };
}

/** @throws OperatorError `OwnershipConflict`, as the operator reports it, where another custom resource makes an object too */
function refuseTwins(makers: Map<string, string>, maker: string, objects: readonly AnyObject[]): void {
  for (const object of objects) {
    const id = objectId(object);
    const other = makers.get(id);
    if (other !== undefined)
      throw new OperatorError({
        reason: 'OwnershipConflict',
        message: `${maker} makes ${describeRef(object)}, and so does ${other}: give one of them another name`,
      });
    makers.set(id, maker);
  }
}

function renderKind(
  kind: Kind,
  inputs: readonly CustomResourceInput[],
  { files = {}, flags }: RenderOptions,
  written: (rendered: Rendered) => void,
): (readonly [Finding['level'], Remark])[] {
  if (!('together' in kind.rendering)) return [];
  const section = files.policy?.[kind.name];
  const inputOf = (cr: CustomResource | undefined): CustomResourceInput | undefined =>
    inputs.find((input) => input.cr === cr);
  // Whatever files they come in.
  const named = inputs.map((input) => [fileName(kind.type, input.cr), input.cr] as const);
  const ordered = named.sort(([a], [b]) => (a < b ? -1 : 1)).map(([, cr]) => cr);
  const { manifests, findings = [] } = kind.rendering.together(ordered, {
    render: (rendered, cr) => render(rendered, cr, files),
    inForce: { current: files },
    ...(flags && { flags }),
    ...(section !== undefined && { policy: section }),
  });
  for (const { of, objects } of manifests) {
    const input = inputOf(of);
    const name = of ? fileName(kind.type, of) : kindFileName(kind.type);
    const plain = objects.map((object) => copyPlain(object) as AnyObject);
    written({ name, ...(input && { of: input }), objects: plain });
  }
  return findings.map(({ level, of, path = [], message }) => {
    const document = inputOf(of)?.document;
    return [level, document ? { document, path, message } : { path: [], message }];
  });
}
