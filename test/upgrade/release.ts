import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Document, parseAllDocuments, visit } from 'yaml';
import { repoFolder } from '../../sandbox/paths.js';
import { describeRef, refOf } from '../../src/contract/object.js';
import type { AnyObject, KubernetesObject } from '../../src/contract/object.js';

/**
 * What a release has left in a cluster in which all examples had settled. On disk it is one folder, named by the
 * version, with a file for the custom resources and one for what was applied for them, both as they were read.
 */
export interface Release {
  readonly version: string;
  /** With their status. */
  readonly customResources: readonly KubernetesObject[];
  /** With `managedFields`, and without a status. */
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
  /^default\/(appservice-full|appservice-sample|autoscaling|files|route|rollout|reports|good-morning)$/,
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
  write(version, FILES.customResources, customResources.map(recorded));
  write(
    version,
    FILES.applied,
    applied.map(({ status: _, ...object }) => recorded(object as AnyObject)),
  );
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
    // Who owns what is long, and nobody reads it line by line.
    visit(document, {
      Pair: (_, { key, value }) => {
        if (String(key) === 'fieldsV1' && value) (value as { flow?: boolean }).flow = true;
      },
    });
    return `---\n${document.toString({ lineWidth: 0 })}`;
  });
  writeFileSync(join(folder, version, file), texts.join(''));
}

const CHANGING: readonly string[] = ['resourceVersion', 'creationTimestamp', 'generation'];

/** Without what changes with every write. */
function recorded({ apiVersion, kind, ...object }: KubernetesObject): object {
  const metadata = Object.fromEntries(
    Object.entries(object.metadata).filter(([name]) => !CHANGING.includes(name)),
  );
  return { apiVersion, kind, ...object, metadata };
}
