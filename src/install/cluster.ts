import { OperatorError } from '../contract/error.js';
import { describeRef, refOf } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { resourceType } from '../contract/resource.js';
import type { ResourceType } from '../contract/resource.js';

/**
 * The few requests that installing and removing take.
 *
 * **Errors.** An OperatorError where the API server refuses or doesn't answer.
 */
export interface Cluster {
  /** Nothing where it, or its type, isn't there. */
  find(type: ResourceType, key: string): Promise<AnyObject | undefined>;
  /** In all namespaces unless one is named; none where the type isn't served. */
  list(type: ResourceType, scope?: ListScope): Promise<readonly AnyObject[]>;
  apply(type: ResourceType, object: AnyObject, options: ApplyOptions): Promise<Applied>;
  /** Deletes the object as it was seen; done as well where it has gone already. */
  delete(type: ResourceType, seen: AnyObject, propagation: 'Background' | 'Foreground'): Promise<void>;
  /** The types with namespaces whose objects can be listed and deleted, of whatever version. */
  namespacedTypes(): Promise<ServedTypes>;
  /**
   * Looks again and again until there is nothing left to wait for.
   * @param pending what is waited for, for people; empty when it is done
   */
  until(pending: () => Promise<string>): Promise<void>;
}

export interface ServedTypes {
  /** Each in one version. */
  readonly types: readonly ResourceType[];
  /** The groups and versions that couldn't be asked, as where an aggregated API is down. */
  readonly unseen: readonly string[];
}

export interface ListScope {
  readonly namespace?: string;
  /** A label selector. */
  readonly selector?: string;
  /** Reads nothing but the metadata. @default false */
  readonly metadataOnly?: boolean;
}

export interface ApplyOptions {
  readonly fieldManager: string;
  /** Takes fields over from other managers instead of failing. */
  readonly force: boolean;
}

export interface Applied {
  readonly object: AnyObject;
  readonly created: boolean;
}

/** What was done, or would be, for people. */
export type Tell = (line: string) => void;

export { definitionType } from '../contract/resource.js';

export const namespaceType = resourceType({ apiVersion: 'v1', kind: 'Namespace', namespaced: false });

/** Whether the API server can be asked, and a part of what it serves can't. */
export function isPartial(error: unknown): boolean {
  return error instanceof OperatorError && !['Unreachable', 'Unauthorized'].includes(error.reason);
}

/** How something that is installed is served: Kubernetes' own types, whose plurals can be guessed. */
export function typeOf({ apiVersion, kind, metadata }: AnyObject): ResourceType {
  return resourceType({ apiVersion, kind, namespaced: metadata.namespace !== undefined });
}

/** For people. */
export function nameOf(object: AnyObject): string {
  return describeRef(refOf(object));
}
