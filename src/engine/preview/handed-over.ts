import type { ApplyStep } from '../../contract/controller.js';
import { isMap, objectId } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';

type Path = readonly string[];
type Map_ = Readonly<Record<string, unknown>>;

/** A field that passes to another manager, and what it comes to. */
interface Handed {
  readonly path: Path;
  /** @default - nobody says it any more, so it goes */
  readonly value?: unknown;
}

/**
 * The fields that a plan hands over. A dry run leaves nothing on which another could build, so they are left out of what
 * is tried, and set in what it came to.
 */
export class HandedOver {
  private readonly byObject = new Map<string, readonly Handed[]>();

  constructor(steps: readonly ApplyStep[]) {
    const ids = new Set(steps.filter(({ handOver }) => handOver).map(({ object }) => objectId(object)));
    for (const id of ids)
      this.byObject.set(id, handedIn(steps.filter(({ object }) => objectId(object) === id)));
  }

  /** The objects of which something is handed over. */
  get objects(): readonly string[] {
    return [...this.byObject.keys()];
  }

  /** What is tried of an apply. */
  without(object: AnyObject): AnyObject {
    return this.of(object).reduce((left, { path }) => withoutPath(left, path), object);
  }

  /** What an object comes to once everything has been handed over. */
  laidOver(object: AnyObject): AnyObject {
    return this.of(object).reduce(
      (left, { path, value }) =>
        value === undefined ? withoutPath(left, path) : withPath(left, path, value),
      object,
    );
  }

  private of(object: AnyObject): readonly Handed[] {
    return this.byObject.get(objectId(object)) ?? [];
  }
}

/** Who applies last has the last word, else the last step of those who hand over. */
function handedIn(steps: readonly ApplyStep[]): Handed[] {
  const handing = steps.filter(({ handOver }) => handOver);
  const last = [...new Map(handing.map((step) => [step.fieldManager, step])).values()];
  const final = [...steps.filter(({ handOver }) => !handOver), ...last].map(({ object }) => object);
  const paths = new Map(
    handing.flatMap(({ object }) => leaves(object)).map((path) => [path.join('\0'), path]),
  );
  return [...paths.values()].map((path) => {
    const value = final.map((object) => valueAt(object, path)).find((found) => found !== undefined);
    return { path, ...(value !== undefined && { value }) };
  });
}

/** Of what an object says beside which it is. */
function leaves({ apiVersion, kind, metadata, ...content }: AnyObject): Path[] {
  return leavesOf(content, []);
}

function leavesOf(value: unknown, path: Path): Path[] {
  if (!isMap(value)) return value === undefined ? [] : [path];
  return Object.entries(value).flatMap(([name, member]) => leavesOf(member, [...path, name]));
}

function valueAt(value: unknown, path: Path): unknown {
  return path.reduce(
    (at: unknown, name) => (isMap(at) && Object.hasOwn(at, name) ? at[name] : undefined),
    value,
  );
}

function withoutPath<T extends Map_>(map: T, [name = '', ...rest]: Path): T {
  if (!Object.hasOwn(map, name)) return map;
  const { [name]: member, ...others } = map;
  const left = rest.length > 0 && isMap(member) ? withoutPath(member, rest) : undefined;
  const isGone = left === undefined || Object.keys(left).length === 0;
  return { ...others, ...(!isGone && { [name]: left }) } as unknown as T;
}

function withPath<T extends Map_>(map: T, [name = '', ...rest]: Path, value: unknown): T {
  const member = Object.hasOwn(map, name) ? map[name] : undefined;
  const inner = rest.length === 0 ? value : withPath(isMap(member) ? member : {}, rest, value);
  return { ...map, [name]: inner };
}
