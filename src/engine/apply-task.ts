import { hash } from 'node:crypto';
import type { Change } from '../contract/change.js';
import type { ApplyStep } from '../contract/controller.js';
import { APPLIED_HASH_ANNOTATION, SHARED_HASH_PREFIX } from '../contract/names.js';
import { objectId, objectKey } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { canonicalJson } from './managed-fields.js';
import type { NodePorts } from './node-ports.js';
import type { Refused } from './refusals.js';
import type { Entry, Store, StoreReader } from './cache.js';

/** What became of a task. */
export type Outcome = Omit<Change, 'ref'>;

/** One step, and what it needs over and over. */
export interface Task {
  readonly step: ApplyStep;
  readonly reader: StoreReader;
  readonly store: Store;
  readonly key: string;
  /** Names the object in what is remembered. */
  readonly objectId: string;
  /** What is sent. */
  readonly intent: AnyObject;
  readonly hash: string;
  /** The annotation that carries the hash. */
  readonly hashName: string;
  /** How often a node port that it asks for has become free, by the time the task was made. */
  readonly portsFreed: number;
}

export function taskOf(step: ApplyStep, reader: StoreReader, nodePorts: NodePorts): Task {
  const { object } = step;
  const hashed = hash('sha256', canonicalJson(object), 'hex').slice(0, 32);
  return {
    step,
    reader,
    store: reader.store(object),
    key: objectKey(object.metadata.namespace, object.metadata.name),
    objectId: objectId(object),
    intent: withBookkeeping(step, hashed),
    hash: hashed,
    hashName: hashName(step),
    portsFreed: nodePorts.timesFreed(object),
  };
}

/** What a task applies when it names nothing but the object: then all that was applied is given up. */
export function withoutContent({ apiVersion, kind, metadata: { namespace, name } }: AnyObject): AnyObject {
  return { apiVersion, kind, metadata: { name, ...(namespace && { namespace }) } };
}

/** Whether nothing is said of an object but which it is. */
export function saysNothing({ apiVersion, kind, metadata, ...content }: AnyObject): boolean {
  const { namespace, name, ...rest } = metadata;
  return isEmpty(content) && isEmpty(rest);
}

function isEmpty(value: unknown): boolean {
  if (value === undefined) return true;
  return typeof value === 'object' && value !== null && Object.values(value).every(isEmpty);
}

function hashName({ owner, fieldManager }: ApplyStep): string {
  return owner ? APPLIED_HASH_ANNOTATION : SHARED_HASH_PREFIX + fieldManager;
}

export function refusalId({ step, objectId }: Task): string {
  return `${step.fieldManager} ${objectId}`;
}

export function refused({ hash, step, portsFreed }: Task, known: Entry | undefined): Refused {
  const { generation, resourceVersion } = known?.object.metadata ?? {};
  return {
    hash,
    owner: step.owner?.uid,
    version: generation === undefined ? resourceVersion : String(generation),
    resourceVersion,
    portsFreed,
  };
}

/** With its UID in the body, an apply fails where it would otherwise bring a deleted object back. */
export function withUid(intent: AnyObject, uid: string | undefined): AnyObject {
  return uid === undefined ? intent : { ...intent, metadata: { ...intent.metadata, uid } };
}

/** The two things that are added to what was rendered: to whom it belongs, and the hash by which it is known again. */
function withBookkeeping(step: ApplyStep, hashed: string): AnyObject {
  const { object, owner } = step;
  if (!owner && saysNothing(object)) return withoutContent(object);
  return {
    ...object,
    metadata: {
      ...object.metadata,
      annotations: { ...object.metadata.annotations, [hashName(step)]: hashed },
      ...(owner && { ownerReferences: [...(object.metadata.ownerReferences ?? []), owner] }),
    },
  };
}
