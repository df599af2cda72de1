import { APPLIED_HASH_ANNOTATION } from '../contract/names.js';
import type { KubernetesObject } from '../contract/object.js';

/** Record of the last apply of a child: by it a restart knows that nothing is to be done, and an owner its lost child. */
export interface AppliedRecord {
  /** `contentHash` of what was rendered for it. */
  readonly hash: string;
  /** UID of the custom resource that it was applied for. @default - unknown: applied by a release that didn't record it */
  readonly owner?: string;
}

/** Returns the record in an annotation; undefined where nothing is recorded. Words that later releases add are ignored. */
export function recordOf(
  { metadata }: KubernetesObject,
  annotation = APPLIED_HASH_ANNOTATION,
): AppliedRecord | undefined {
  const [hash, owner] = metadata.annotations?.[annotation]?.split(' ') ?? [];
  return hash === undefined ? undefined : { hash, ...(owner && { owner }) };
}

/** Returns the value of the annotation that holds a record. */
export function recordText({ hash, owner }: AppliedRecord): string {
  return owner === undefined ? hash : `${hash} ${owner}`;
}
