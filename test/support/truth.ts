import { expect } from 'vitest';
import type { Condition } from '../../src/contract/conditions.js';
import type { Reader, TypeRef, Watch } from '../../src/contract/controller.js';
import { keepStatus } from '../../src/values/projections.js';
import { childrenFieldManager } from '../../src/contract/names.js';
import { controllerOf, groupOf, objectKey } from '../../src/contract/object.js';
import type { AnyObject } from '../../src/contract/object.js';
import { groupKind } from '../../src/contract/resource.js';
import { render } from '../../src/render/renderer.js';
import { eventually } from './cluster.js';
import type { EventuallyOptions } from './cluster.js';
import { appliedBy, asStored, withoutBookkeeping } from './subject.js';
import type { LiveResource, Subject } from './subject.js';

export interface TruthOptions extends EventuallyOptions {
  /** Custom resources that can't be what they are meant to be, and the reason that their conditions give. @default - none */
  readonly failing?: Readonly<Record<string, string>>;
}

/** All custom resources of a kind in a namespace, and all objects of its children's types, as they are now. */
interface Picture {
  readonly resources: readonly LiveResource[];
  readonly objects: ReadonlyMap<string, readonly AnyObject[]>;
  readonly byOwner: ReadonlyMap<string, readonly AnyObject[]>;
  /** What a controller keeps of the objects that it watches beside the custom resources. */
  readonly known: readonly Known[];
}

/** The objects of one watch, as kept. */
interface Known {
  readonly watch: Watch;
  readonly objects: ReadonlyMap<string, AnyObject>;
  readonly byOwner: ReadonlyMap<string, readonly AnyObject[]>;
  readonly byKey: ReadonlyMap<string, readonly AnyObject[]>;
}

/**
 * Waits until every custom resource has the children that it renders to, as they were rendered, and the status that
 * its kind's own function gives for the children as they are; and until nothing is left of those that are gone.
 *
 * It reads everything at once and with few requests, so that it holds for a thousand as well as for one.
 */
export async function statusesTellTheTruth(
  subject: Subject,
  { failing = {}, deadlineMilliseconds = 60_000, intervalMilliseconds = 250 }: TruthOptions = {},
): Promise<void> {
  await eventually(
    async () => {
      const picture = await pictureOf(subject);
      const problems: string[] = [];
      for (const cr of picture.resources) {
        // The first few say enough, and a thousand differences would hide them.
        if (problems.length >= 3) break;
        problems.push(
          ...problemsOf(() => {
            judge(subject, cr, picture, failing[cr.metadata.name]);
          }),
        );
      }
      problems.push(...leftovers(subject, picture).slice(0, 3));
      if (problems.length > 0) throw new Error(problems.join('\n'));
    },
    { deadlineMilliseconds, intervalMilliseconds },
  );
}

async function pictureOf(subject: Subject): Promise<Picture> {
  const { cluster, kind, namespace } = subject;
  const objects = new Map<string, AnyObject[]>();
  const known: Known[] = [];
  for (const watch of kind.controllers({ render })[0]!.watches.slice(1)) {
    const { type, selector } = watch;
    const live = selector ? await cluster.list(type, namespace, selector) : await subject.objects(type);
    const named = live.map((object) => ({ ...object, apiVersion: type.apiVersion, kind: type.kind }));
    if (!watch.readOnly) objects.set(groupKind(type), named);
    known.push(asKept(watch, named));
  }
  const byOwner = groupedBy([...objects.values()].flat(), (object) => [ownerOf(object)]);
  const { apiVersion, kind: name } = kind.type;
  const resources = await cluster.list<LiveResource>(kind.type, namespace);
  return { resources: resources.map((cr) => ({ ...cr, apiVersion, kind: name })), objects, byOwner, known };
}

function asKept(watch: Watch, objects: readonly AnyObject[]): Known {
  const kept = objects.flatMap((object) => (watch.keep ?? keepStatus)(object) ?? []);
  return {
    watch,
    objects: new Map(kept.map((object) => [keyOf(object), object])),
    byOwner: groupedBy(kept, (object) => [ownerOf(object)]),
    byKey: groupedBy(kept, (object) => watch.mapsTo(object)),
  };
}

function groupedBy(
  objects: readonly AnyObject[],
  keysOf: (object: AnyObject) => readonly string[],
): Map<string, AnyObject[]> {
  const groups = new Map<string, AnyObject[]>();
  for (const object of objects)
    for (const key of keysOf(object)) {
      const group = groups.get(key);
      if (group) group.push(object);
      else groups.set(key, [object]);
    }
  return groups;
}

function ownerOf(object: AnyObject): string {
  return controllerOf(object)?.uid ?? '';
}

function keyOf({ metadata }: AnyObject): string {
  return objectKey(metadata.namespace, metadata.name);
}

function judge(subject: Subject, cr: LiveResource, picture: Picture, reason: string | undefined): void {
  const { name } = cr.metadata;
  expect(cr.metadata.deletionTimestamp, `${name} is still being deleted`).toBeUndefined();
  const { conditions, ...fields } = expectedStatus(subject, cr, picture);
  const live = cr.status ?? {};
  if (reason !== undefined) {
    const told = live.conditions?.find(({ type }) => type === 'Ready');
    expect(told, name).toMatchObject({ status: 'False', reason, observedGeneration: cr.metadata.generation });
    expect(live, name).toMatchObject(fields);
    return;
  }
  expect(live, `The status of ${name}`).toEqual({ ...fields, conditions });
  // Of former children none is rendered, so none may be there.
  for (const type of [...subject.kind.children, ...subject.kind.formerChildren]) {
    const wanted = render(subject.kind, cr).filter((object) => groupKind(object) === groupKind(type));
    const own = (picture.byOwner.get(cr.metadata.uid ?? '') ?? []).filter(
      (child) => groupKind(child) === groupKind(type),
    );
    const names = (list: readonly AnyObject[]): string[] => list.map(({ metadata }) => metadata.name).sort();
    expect(names(own), `The ${type.plural} of ${name}`).toEqual(names(wanted));
    for (const object of wanted) {
      const child = own.find(({ metadata }) => metadata.name === object.metadata.name)!;
      const applied = appliedBy(childrenFieldManager(subject.kind.type.kind), child);
      const what = `The ${type.kind} ${object.metadata.name}`;
      expect(withoutBookkeeping(applied, object), what).toEqual(asStored(object));
    }
  }
}

/** What the controller would write, had it seen the cluster as it is, and had nothing failed. */
function expectedStatus(
  { kind, namespace }: Subject,
  cr: LiveResource,
  { known }: Picture,
): { readonly conditions: readonly Condition[]; readonly [field: string]: unknown } {
  const of = (type: TypeRef): Known => known.find(({ watch }) => groupKind(watch.type) === groupKind(type))!;
  const reader: Reader = {
    get: (type, key) =>
      groupKind(type) === groupKind(kind.type) ? (cr as unknown as AnyObject) : of(type).objects.get(key),
    all: () => [],
    controlledBy: (type, uid) => of(type).byOwner.get(uid) ?? [],
    mappedTo: (type, key) => of(type).byKey.get(key) ?? [],
    find: () => ({}),
  };
  const key = objectKey(namespace, cr.metadata.name);
  const plan = kind.controllers({ render })[0]!.reconcile(key, reader, new Date());
  return plan.conclude([]).status[0]!.status as ReturnType<typeof expectedStatus>;
}

/** Children whose custom resource is gone. */
function leftovers({ kind }: Subject, { resources, objects }: Picture): string[] {
  const alive = new Set(resources.map(({ metadata }) => metadata.uid));
  return [...objects.values()].flat().flatMap((object) => {
    const owner = controllerOf(object);
    if (owner?.kind !== kind.type.kind || groupOf(owner.apiVersion) !== kind.crd.spec.group) return [];
    return alive.has(owner.uid) ? [] : [`${object.kind} ${object.metadata.name} is left of ${owner.uid}`];
  });
}

function problemsOf(check: () => void): string[] {
  try {
    check();
    return [];
  } catch (error) {
    return [String(error)];
  }
}
