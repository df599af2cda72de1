import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Document, isSeq, parseAllDocuments, visit } from 'yaml';
import { repoFolder } from '../../sandbox/paths.js';
import { describeRef, refOf } from '../../src/contract/object.js';
import type { AnyObject, KubernetesObject } from '../../src/contract/object.js';
import { appliedEntriesOf } from '../support/subject.js';

/**
 * What a release has left in a cluster in which all examples had settled. On disk it is one folder, named by the
 * version, with a file for the custom resources and one for what was applied for them, both as they were read.
 */
export interface Release {
  readonly version: string;
  /** With the status of those that no child of theirs changes. */
  readonly customResources: readonly KubernetesObject[];
  /** With what was applied of `managedFields`, and without a status. */
  readonly applied: readonly AnyObject[];
}

const folder = join(repoFolder(), 'test/upgrade/released');
const FILES = { customResources: 'custom-resources.yaml', applied: 'applied.yaml' } as const;

/** @throws unless there is exactly one */
export function lastRelease(): Release {
  const versions = readdirSync(folder);
  const [version] = versions;
  if (version === undefined || versions.length > 1)
    throw new Error(`There is to be one release in ${folder}, and not ${versions.join(', ')}`);
  return {
    version,
    customResources: read(version, FILES.customResources),
    applied: read(version, FILES.applied),
  };
}

/** The custom resources that are recorded, by namespace and name: each kind, and each type of child, at least once. */
const RECORDED: readonly RegExp[] = [
  /^shop\//,
  /^default\/(appservice-full|autoscaling|route|reports|good-morning)$/,
];

/** Replaces the recorded release. @throws where something can't be made as it was */
export function recordRelease(release: Release): void {
  const { version } = release;
  const customResources = release.customResources.filter(({ metadata: { namespace, name } }) =>
    RECORDED.some((pattern) => pattern.test(`${namespace}/${name}`)),
  );
  const uids = new Set(customResources.map(({ metadata }) => metadata.uid));
  const applied = release.applied.filter(({ metadata: { ownerReferences = [] } }) =>
    ownerReferences.every(({ uid }) => uids.has(uid)),
  );
  const edited = customResources.filter(({ metadata }) => metadata.generation !== 1);
  if (edited.length > 0) throw new Error(`Not as it was made: ${edited.map(named).join(', ')}`);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(join(folder, version), { recursive: true });
  write(version, FILES.customResources, customResources.map(recordedCustomResource));
  write(version, FILES.applied, applied.map(recordedChild));
}

function named(object: KubernetesObject): string {
  return describeRef(refOf(object));
}

function read(version: string, file: string): AnyObject[] {
  const documents = parseAllDocuments(readFileSync(join(folder, version, file), 'utf8'));
  return documents.map((document) => document.toJS() as AnyObject);
}

function write(version: string, file: string, objects: readonly object[]): void {
  const texts = objects.map((object) => {
    const document = new Document(object);
    // Lists of fields are long, and nobody reads them line by line; of conditions, one is a line.
    visit(document, {
      Pair: (_, { key, value }) => {
        if (String(key) === 'fieldsV1' && value) (value as { flow?: boolean }).flow = true;
        if (String(key) === 'conditions' && isSeq<{ flow?: boolean }>(value))
          for (const item of value.items) item.flow = true;
      },
    });
    return `---\n${document.toString({ lineWidth: 0 })}`;
  });
  writeFileSync(join(folder, version, file), texts.join(''));
}

/** Leaves out what changes with every write, and the owners of fields, which the restored one gets by itself. */
function recordedCustomResource(object: KubernetesObject): object {
  const { apiVersion, kind, status, metadata, ...rest } = object as AnyObject;
  const { name, namespace, labels, annotations, uid } = metadata;
  const hasChildren = !['StreamIngress', 'JobWatcher'].includes(kind);
  return {
    ...{ apiVersion, kind, metadata: { name, namespace, labels, annotations, uid } },
    ...rest,
    ...(!hasChildren && { status }),
  };
}

function recordedChild({ apiVersion, kind, status: _, ...object }: AnyObject): object {
  const { uid, resourceVersion, creationTimestamp, generation, ...metadata } = object.metadata;
  const managedFields = appliedEntriesOf({ apiVersion, kind, ...object }).map(
    ({ manager, operation, fieldsV1 }) => ({ manager, operation, fieldsV1 }),
  );
  return { apiVersion, kind, ...object, metadata: { ...metadata, managedFields } };
}
