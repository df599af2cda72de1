import { OperatorError } from '../contract/error.js';
import { describeRef, objectKey, refOf } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { resourceType } from '../contract/resource.js';
import type { ResourceType } from '../contract/resource.js';

/**
 * Requests of installing and removing.
 *
 * **Errors.** An OperatorError where the API server refuses or doesn't answer.
 */
export interface Cluster {
  /** Returns undefined where the object, or its type, isn't there. */
  find(type: ResourceType, key: string): Promise<AnyObject | undefined>;
  /** Lists in all namespaces unless one is named; nothing where the type isn't served. */
  list(type: ResourceType, scope?: ListScope): Promise<readonly AnyObject[]>;
  apply(type: ResourceType, object: AnyObject, options: ApplyOptions): Promise<Applied>;
  /**
   * Deletes the object with the UID of `seen`, if it is still there.
   * @param dryRun has the API server judge it, and delete nothing. @default false
   */
  delete(
    type: ResourceType,
    seen: AnyObject,
    propagation: 'Background' | 'Foreground',
    dryRun?: boolean,
  ): Promise<void>;
  /** Returns the namespaced types whose objects can be listed and deleted, of whatever version. */
  namespacedTypes(): Promise<ServedTypes>;
  /**
   * Polls until there is nothing left to wait for.
   * @param pending returns what is waited for, as text; empty when it is done
   */
  until(pending: () => Promise<string>): Promise<void>;
}

export interface ServedTypes {
  readonly types: readonly ResourceType[];
  /** Groups and versions that don't answer, such as an aggregated API that is down. */
  readonly unseen: readonly string[];
}

export interface ListScope {
  readonly namespace?: string;
  readonly selector?: string;
  /** Whether only the metadata is read. @default false */
  readonly metadataOnly?: boolean;
}

export interface ApplyOptions {
  readonly fieldManager: string;
  /** Whether fields are taken over from other managers, instead of failing. */
  readonly force: boolean;
  /** Whether the API server only judges it, and stores nothing. @default false */
  readonly dryRun?: boolean;
}

export interface Applied {
  readonly object: AnyObject;
  readonly created: boolean;
}

/** Prints a line on what was done, or would be. */
export type Report = (line: string) => void;

export const namespaceType = resourceType({ apiVersion: 'v1', kind: 'Namespace', namespaced: false });

/** Types of the Prometheus operator. @see https://prometheus-operator.dev/docs/api-reference/api/ */
const MONITORING = 'monitoring.coreos.com/v1';
export const serviceMonitorType = resourceType({ apiVersion: MONITORING, kind: 'ServiceMonitor' });
export const prometheusRuleType = resourceType({ apiVersion: MONITORING, kind: 'PrometheusRule' });

/** Reports whether the API server answers, and only a part of what it serves can't be read. */
export function isPartial(error: unknown): boolean {
  return error instanceof OperatorError && !['Unreachable', 'Unauthorized'].includes(error.reason);
}

/** Key for requests: `shop/web`. */
export function keyOf({ metadata: { namespace, name } }: AnyObject): string {
  return objectKey(namespace, name);
}

/** For messages: `Deployment shop/web`. */
export function nameOf(object: AnyObject): string {
  return describeRef(refOf(object));
}

/** Returns what a field manager has applied of an object, from its managedFields; undefined where that is nothing. */
export function appliedEntry({ metadata }: AnyObject, fieldManager: string): object | undefined {
  const { managedFields = [] } = metadata as {
    readonly managedFields?: readonly { manager?: string; operation?: string; subresource?: string }[];
  };
  return managedFields.find(
    ({ manager, operation, subresource }) =>
      manager === fieldManager && operation === 'Apply' && !subresource,
  );
}
