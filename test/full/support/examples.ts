import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repoFolder } from '../../../sandbox/paths.js';
import { loadKinds } from '../../../src/cli/config.js';
import type { Kind } from '../../../src/contract/kind.js';
import type { AnyObject } from '../../../src/contract/object.js';
import { groupKind } from '../../../src/contract/resource.js';
import { builtInKinds } from '../../../src/kinds/index.js';
import { parseDocuments } from '../../../src/synth/document.js';

/** A custom resource in `examples/`. */
export interface Example {
  /** Its path below `examples/`. */
  readonly file: string;
  readonly kind: Kind;
  /** With a namespace, which is `default` where the file names none. */
  readonly object: AnyObject;
}

export const examplesFolder = join(repoFolder(), 'examples');

/** The configuration that brings the example's own kind, beside the built-in ones. */
export const exampleConfig = join(examplesFolder, 'scheduled-task/reconstruct.config.mjs');

/** Every kind of which there is an example. */
export async function exampleKinds(): Promise<Kind[]> {
  return loadKinds({ config: exampleConfig, builtIn: builtInKinds });
}

/** What else is there, each as `FILE: KIND`; a policy has no kind, and two kinds are tried by sweeps of their own. */
const OTHERS: readonly string[] = [
  'event-bus/__snapshots__/sample.yaml: ConfigMap',
  'event-bus/__snapshots__/sample.yaml: PodDisruptionBudget',
  'event-bus/__snapshots__/sample.yaml: Service',
  'event-bus/__snapshots__/sample.yaml: StatefulSet',
  'event-bus/sample.yaml: EventBus',
  'event-bus/tsconfig.json: ',
  'jobwatcher/jobs/pi.yaml: Job',
  'policy/policy.yaml: ConfigMap',
  'port-rule/__snapshots__/sample.yaml: DaemonSet',
  'port-rule/portrules.firewalld.fedoraproject.org.yaml: CustomResourceDefinition',
  'port-rule/sample.yaml: PortRule',
  'scheduled-task/__snapshots__/sample.yaml: ConfigMap',
  'scheduled-task/__snapshots__/sample.yaml: CronJob',
  'scheduled-task/scheduledtasks.tasks.example.com.yaml: CustomResourceDefinition',
  'streamingress/admin/ingress-nginx.yaml: Namespace',
  'streamingress/admin/ingress-nginx.yaml: Service',
  'streamingress/admin/policy.yaml: ',
  'streamingress/admin/reference-grant.yaml: ReferenceGrant',
];

/** A repository by itself, with what other tools read and what is rendered, which has tests of its own. */
const REPOSITORY = 'gitops';

/**
 * All custom resources in `examples/`, by file.
 * @throws where something else is there that isn't known, so that no example is left out by mistake
 */
export function allExamples(kinds: readonly Kind[]): Example[] {
  const exclude = [`${REPOSITORY}/**`];
  const files = globSync('**/*.{yaml,yml,json}', { cwd: examplesFolder, exclude }).sort();
  const found = files.flatMap((file) => documentsOf(file).map((object) => ({ file, object })));
  const examples: Example[] = [];
  const others = new Set<string>();
  for (const { file, object } of found) {
    const { apiVersion = '', kind: name = '' } = object as Partial<AnyObject>;
    const kind = kinds.find(({ type }) => groupKind(type) === groupKind({ apiVersion, kind: name }));
    if (!kind) others.add(`${file}: ${name}`);
    else examples.push({ file, kind, object: withNamespace(object) });
  }
  const unknown = [...others].filter((other) => !OTHERS.includes(other));
  const gone = OTHERS.filter((other) => !others.has(other));
  if (unknown.length > 0) throw new Error(`No custom resource, and not known: ${unknown.join(', ')}`);
  if (gone.length > 0) throw new Error(`Not there any more: ${gone.join(', ')}`);
  return examples;
}

/** The only document of a file below `examples/`. */
export function exampleDocument(file: string): AnyObject {
  const [only] = documentsOf(file);
  if (!only) throw new Error(`${file} holds nothing`);
  return only;
}

function documentsOf(file: string): AnyObject[] {
  const text = readFileSync(join(examplesFolder, file), 'utf8');
  const documents = parseDocuments({ name: file, text }, (problem) => {
    throw new Error(problem);
  });
  return documents.map(({ value }) => value as AnyObject);
}

function withNamespace(object: AnyObject): AnyObject {
  return { ...object, metadata: { ...object.metadata, namespace: object.metadata.namespace ?? 'default' } };
}
