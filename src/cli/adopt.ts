import { existsSync } from 'node:fs';
import { storedVersion } from '../contract/crd.js';
import { unpaused } from '../author/status.js';
import { secretType } from '../values/generated.js';
import type { Kind } from '../contract/kind.js';
import { ADOPT_BY_ANNOTATION } from '../contract/names.js';
import { controllerOf, describeRef, keyOf, objectId, objectKey } from '../contract/object.js';
import type { AnyObject, ObjectRef } from '../contract/object.js';
import { groupKind } from '../contract/resource.js';
import type { ResourceType } from '../contract/resource.js';
import { Api } from '../client/api.js';
import { offerTo } from '../engine/steps/apply.js';
import type { GivenResource, ObjectPreview } from '../engine/preview/preview.js';
import type { Transport } from '../client/transport.js';
import { applyDefaults } from '../validate/defaults.js';
import { forPerson, withCluster } from './cluster.js';
import type { SharedOptions } from './options.js';
import { loadKinds } from './config.js';
import { contextBy, previewKind } from './diff/compare.js';
import { readGiven } from './given.js';
import type { PreviewMeans } from './diff/compare.js';
import { textOf } from './diff/text.js';
import { CliError, confirmed, counted, paint, plain, print, printError, warn } from './output.js';
import { meansKind, noSuchResource, targetsOf } from './targets.js';
import type { KindTarget } from './targets.js';
import { lister } from './reader.js';

interface AdoptOptions extends SharedOptions {
  readonly filename?: readonly string[];
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

type Resource = GivenResource & { readonly input: { readonly kind: Kind } };

/** Object that is handed over, and the custom resource that gets it. */
interface Adoption {
  readonly type: ResourceType;
  readonly uid: string | undefined;
  readonly offer: string;
  readonly preview: ObjectPreview;
}

/** `reconstruct adopt`: hands the existing objects that custom resources render over to them. */
export async function runAdopt(words: readonly string[], options: AdoptOptions): Promise<void> {
  const { filename = [], recursive = false, dryRun = false, yes = false } = options;
  const sources = [...words, ...filename];
  const [first] = sources;
  if (first === undefined)
    throw new CliError('adopt for which custom resource? Name it, as in "adopt appsvc web", or give files');
  if (!dryRun && !yes && !process.stdin.isTTY)
    throw new CliError(
      'adopt asks before it hands anything over, and there is no terminal: add --yes, or --dry-run to see what would change',
    );
  const kinds = await loadKinds(options);
  const isFile = filename.length > 0 || first === '-' || existsSync(first) || !meansKind(first, kinds);
  const targets = isFile ? [] : targetsOf(words, kinds);
  if (targets.some(({ name }) => name === undefined))
    throw new CliError(`${words.join(' ')}: name the custom resources, as in "adopt ${first} web"`);
  const contextOf = await contextBy(options);
  await withCluster(options, async (cluster, { transport, api, namespace }) => {
    const props = { transport, contextFor: contextOf(cluster), warn };
    const given = isFile
      ? await readGiven({ ...props, sources, kinds, recursive, namespace })
      : await Promise.all(targets.map((target) => liveResource(target, namespace, api)));
    const all: Adoption[] = [];
    const refused: string[] = [];
    for (const each of given) all.push(...(await adoptionsOf(each, props, refused)));
    if (refused.length > 0) throw new CliError([...refused, 'Nothing was handed over'], 3);
    if (all.length === 0) {
      printError('nothing to adopt: what they render is theirs already, or not there');
      return;
    }
    await print(textOf({ objects: all.map(({ preview }) => preview), explanations: [] }, paint));
    if (dryRun) return;
    if (!yes && !(await confirmed(`Hand over ${counted(all.length, 'object')}?`)))
      throw new CliError('Nothing was handed over');
    for (const { type, uid, offer, preview } of all) {
      const { namespace: inside, name } = preview.ref;
      const metadata = { uid, annotations: { [ADOPT_BY_ANNOTATION]: offer } };
      await api.mergePatch(type, objectKey(inside, name), { metadata });
      await print(`${plain(describeRef(preview.ref))} handed over to ${offer}\n`);
    }
  });
}

async function liveResource(target: KindTarget, asked: string, api: Api): Promise<Resource> {
  const { kind, name = '' } = target;
  const namespace = kind.type.namespaced ? asked : undefined;
  const before = await api.find(kind.type, objectKey(namespace, name));
  if (!before) throw await noSuchResource(target, namespace, lister(api));
  const { openAPIV3Schema } = storedVersion(kind.crd).schema;
  return { input: { kind }, before, after: applyDefaults(before, openAPIV3Schema) as AnyObject };
}

/**
 * Finds the objects that stand in the way of a custom resource, and what would become of each as one that is handed over: again,
 * until no other shows behind them, as behind a Secret of generated values.
 * @param refused takes why an object can't be handed over
 */
async function adoptionsOf(
  { input: { kind }, before, after }: Resource,
  props: PreviewMeans,
  refused: string[],
): Promise<readonly Adoption[]> {
  const each = 'each' in kind.rendering ? kind.rendering.each : undefined;
  const types = [...(each?.children ?? []), ...(each?.generated ? [secretType] : [])];
  const owner = { kind: kind.type.kind, name: after.metadata.name };
  // A cluster-scoped one has its children anywhere, by owner references.
  const named = { ...owner, ...(after.metadata.namespace !== undefined && { recordedKey: keyOf(after) }) };
  // A pause delays the adoption, and is none of its terms.
  const given = [{ ...(before && { before }), after: unpaused(after) ?? after }];
  const waiting = new Map<string, Omit<Adoption, 'preview'>>();
  for (;;) {
    const offers = new Map([...waiting.values()].map(({ uid, offer }) => [uid, offer]));
    const transport = offering(props.transport, offers);
    const { objects } = await previewKind(kind, given, { ...props, transport }, {});
    const known = refused.length;
    for (const { ref, error } of objects) {
      const type = types.find((one) => groupKind(one) === groupKind(ref));
      if (error?.reason !== 'OwnershipConflict' || !type || waiting.has(objectId(ref))) continue;
      const live = await new Api(props.transport).get(type, objectKey(ref.namespace, ref.name));
      const offer = offerTo(named, ref);
      const why = controllerOf(live) ? forPerson(error.message) : refusal(live, ref, offer);
      if (why === undefined) waiting.set(objectId(ref), { type, uid: live.metadata.uid, offer });
      else refused.push(why);
    }
    if (refused.length > known) return [];
    if (waiting.size > offers.size) continue;
    refused.push(...objects.flatMap(({ error }) => (error ? [forPerson(error.message)] : [])));
    return objects.flatMap((preview) => {
      const adoption = waiting.get(objectId(preview.ref));
      return adoption ? [{ ...adoption, preview }] : [];
    });
  }
}

/** Returns why an object without a controller isn't handed over. */
function refusal(
  { metadata: { annotations = {}, namespace } }: AnyObject,
  ref: ObjectRef,
  offer: string,
): string | undefined {
  const what = describeRef(ref);
  const offered = annotations[ADOPT_BY_ANNOTATION] ?? offer;
  if (offered !== offer)
    return `${what} is handed over to ${offered} already; remove its annotation ${ADOPT_BY_ANNOTATION} first`;
  const release = annotations['meta.helm.sh/release-name'];
  if (release === undefined || annotations['helm.sh/resource-policy'] === 'keep') return undefined;
  const inside = annotations['meta.helm.sh/release-namespace'] ?? namespace;
  return (
    `${what} belongs to the Helm release ${objectKey(inside, release)}, which would delete it with its uninstallation: ` +
    'add the annotation helm.sh/resource-policy: keep to it in the chart, and upgrade the release; then give the command again'
  );
}

/** Returns a transport to an API server on which objects are annotated as handed over. */
function offering(wire: Transport, offers: ReadonlyMap<string | undefined, string>): Transport {
  const marked = (object: AnyObject): AnyObject => {
    const { metadata } = object as Partial<AnyObject>;
    const offer = offers.get(metadata?.uid);
    if (!metadata || offer === undefined) return object;
    const annotations = { ...metadata.annotations, [ADOPT_BY_ANNOTATION]: offer };
    return { ...object, metadata: { ...metadata, annotations } };
  };
  return {
    host: wire.host,
    stream: async (request) => wire.stream(request),
    close: async () => wire.close(),
    request: async (request) => {
      const answer = await wire.request(request);
      if (answer.status !== 200) return answer;
      const { items } = answer.body as { readonly items?: readonly AnyObject[] };
      const body = answer.body as AnyObject;
      return { ...answer, body: items ? { ...body, items: items.map(marked) } : marked(body) };
    },
  };
}
