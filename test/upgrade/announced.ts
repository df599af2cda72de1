import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { repoFolder } from '../../sandbox/paths.js';
import { fieldChanges } from '../../src/engine/preview/fields.js';
import { APPLIED_HASH_ANNOTATION, SHARED_HASH_PREFIX } from '../../src/contract/names.js';
import { describeRef, refOf } from '../../src/contract/object.js';
import type { AnyObject, ObjectMeta } from '../../src/contract/object.js';

/** What an upgrade from the last release changes by itself, and the changelog says so. */
export interface Announced {
  /** In the changelog, as **Upgrade `id`**. */
  readonly id: string;
  /** Of what is applied, e.g. `Deployment`. */
  readonly kind: string;
  /** As `ObservedChange` has them. */
  readonly fields: readonly string[];
}

/** What an upgrade has done to one object. */
export interface ObservedChange {
  /** For people. */
  readonly object: string;
  readonly kind: string;
  /**
   * As in `.spec.template.spec.containers[].image`; or `created`, `deleted`, or `hash` where nothing else is different.
   */
  readonly fields: readonly string[];
}

export function announced(): readonly Announced[] {
  const file = join(repoFolder(), 'test/upgrade/changes.yaml');
  return (parse(readFileSync(file, 'utf8')) as { readonly changes: readonly Announced[] }).changes;
}

/**
 * What has become of an object, but for what others write: the status, and the revision of a Deployment.
 * @param before as the last release left it. @default - it wasn't there
 */
export function observed(
  before: AnyObject | undefined,
  after: AnyObject | undefined,
): ObservedChange | undefined {
  const object = after ?? before;
  if (!object) return undefined;
  const base = { object: describeRef(refOf(object)), kind: object.kind };
  if (!before) return { ...base, fields: ['created'] };
  if (!after) return { ...base, fields: ['deleted'] };
  const paths = fieldChanges(written(before), written(after)).map(({ path }) => path);
  if (paths.length === 0) return undefined;
  const fields = paths.filter((path) => !HASHES.some((name) => path.includes(name))).map(withoutKeys);
  return { ...base, fields: fields.length > 0 ? [...new Set(fields)].sort() : ['hash'] };
}

/** What the changelog says nothing of, in a line each. */
export function unannounced(changes: readonly ObservedChange[], known: readonly Announced[]): string[] {
  return changes.flatMap(({ object, kind, fields }) =>
    fields
      .filter((field) => !known.some((one) => one.kind === kind && one.fields.includes(field)))
      .map((field) => `${object}: ${field}`),
  );
}

/** What the changelog says and no upgrade does, in a line each. */
export function unseen(changes: readonly ObservedChange[], known: readonly Announced[]): string[] {
  return known.flatMap(({ id, kind, fields }) =>
    fields
      .filter((field) => !changes.some((change) => change.kind === kind && change.fields.includes(field)))
      .map((field) => `${id}: ${kind} ${field}`),
  );
}

/** The ids that the changelog names of what has come since a release; all of it, where that isn't listed yet. */
export function namedIn(changelog: string, version: string): string[] {
  const end = changelog.search(new RegExp(`^## \\[?${version.replaceAll('.', '\\.')}\\b`, 'm'));
  const since = end < 0 ? changelog : changelog.slice(0, end);
  return [...since.matchAll(/\*\*Upgrade `([\w-]+)`\*\*/g)].map(([, id]) => id!);
}

/** The version of the topmost heading that has one. @returns undefined where nothing is released yet */
export function newestReleased(changelog: string): string | undefined {
  return /^## \[?(\d+\.\d+\.\d+[^\]\s]*)/m.exec(changelog)?.[1];
}

const HASHES: readonly string[] = [APPLIED_HASH_ANNOTATION, SHARED_HASH_PREFIX];
const REVISION = 'deployment.kubernetes.io/revision';

function written({ status: _, ...object }: AnyObject): object {
  const {
    labels,
    annotations = {},
    ownerReferences,
    finalizers,
  } = object.metadata as ObjectMeta & {
    readonly finalizers?: readonly string[];
  };
  const ours = Object.fromEntries(Object.entries(annotations).filter(([name]) => name !== REVISION));
  return { ...object, metadata: { labels, annotations: ours, ownerReferences, finalizers } };
}

function withoutKeys(path: string): string {
  return path.replaceAll(/\[[^\]]*\]/g, '[]');
}
