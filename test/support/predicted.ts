import { fieldChanges } from '../../src/engine/preview/fields.js';
import type { FieldChange } from '../../src/engine/preview/fields.js';
import type { AnyObject } from '../../src/contract/object.js';
import { visible, withoutPicks } from '../../src/engine/preview/dry-run.js';
import { render } from '../../src/render/renderer.js';
import type { DiffDocument } from './commands.js';
import type { Subject } from './subject.js';

export type Children = ReadonlyMap<string, AnyObject>;

const REVISION = 'deployment.kubernetes.io/revision';

/** The children of one custom resource as they are, by their kind. */
export async function childrenNow(apps: Subject, name: string): Promise<Children> {
  const found = await Promise.all(
    apps.kind.children.map(
      async (type) => [type.kind, await apps.cluster.find(apps.childPlace(type, name))] as const,
    ),
  );
  return new Map(
    found.flatMap(([kind, object]) => (object && !object.metadata.deletionTimestamp ? [[kind, object]] : [])),
  );
}

/** In a line each: what has become of children, but for what the cluster itself has chosen and written. */
export async function whatChanged(
  apps: Subject,
  name: string,
  before: Children,
  after: Children,
): Promise<string[]> {
  const rendered = render(apps.kind, await apps.get(name));
  return apps.kind.children.flatMap(({ kind }) => {
    const [was, is] = [before.get(kind), after.get(kind)];
    if (!was || !is) return was ? [`deleted ${kind}`] : is ? [`created ${kind}`] : [];
    const wanted = rendered.find((object) => object.kind === kind) ?? is;
    const changes = fieldChanges(withoutRevision(was), withoutRevision(withoutPicks(is, was, wanted)));
    const own = changes.filter((change) => !isAutoscaled(change, after.get('HorizontalPodAutoscaler')));
    return own.map((change) => `changed ${kind} ${JSON.stringify(change)}`);
  });
}

/** An autoscaler brings the number within its bounds, a second after it was made. */
function isAutoscaled({ path, before, after }: FieldChange, autoscaler: AnyObject | undefined): boolean {
  if (path !== '.spec.replicas' || !autoscaler) return false;
  const { minReplicas = 1, maxReplicas } = autoscaler.spec as { minReplicas?: number; maxReplicas: number };
  const isWithin = (count: unknown): boolean => Number(count) >= minReplicas && Number(count) <= maxReplicas;
  return before !== 0 && !isWithin(before) && isWithin(after);
}

/** The same, as a diff has it. */
export function whatWouldChange(found: DiffDocument): string[] {
  return found.objects.slice(1).flatMap(({ action, kind, fields }) => {
    if (action === 'unchanged') return [];
    return fields
      ? fields.map((change) => `changed ${kind} ${JSON.stringify(change)}`)
      : [`${action} ${kind}`];
  });
}

/** What a diff says that new children would be, by their kind. */
export function objectsToCreate(found: DiffDocument): Record<string, unknown> {
  const created = found.objects.slice(1).filter(({ action }) => action === 'created');
  return Object.fromEntries(created.map(({ kind, object }) => [kind, object]));
}

/** What the custom resource, as it is now, renders to of the children that weren't there before. */
export async function objectsCreated(
  apps: Subject,
  name: string,
  before: Children,
): Promise<Record<string, unknown>> {
  const created = render(apps.kind, await apps.get(name)).filter(({ kind }) => !before.has(kind));
  return Object.fromEntries(created.map((object) => [object.kind, object]));
}

function withoutRevision(object: AnyObject): AnyObject {
  const { annotations = {}, ...metadata } = visible(object).metadata;
  const kept = Object.entries(annotations).filter(([key]) => key !== REVISION);
  const left = kept.length === 0 ? {} : { annotations: Object.fromEntries(kept) };
  return { ...visible(object), metadata: { ...metadata, ...left } };
}
