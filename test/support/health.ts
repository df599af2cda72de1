import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repoFolder } from '../../sandbox/paths.js';
import { groupOf } from '../../src/contract/object.js';
import type { KubernetesObject } from '../../src/contract/object.js';
import { done, goTool } from './commands.js';

export interface Verdict {
  readonly status: string;
  readonly message: string;
}

/** Health of a custom resource for GitOps tools. */
export interface Health {
  /** Argo CD, with our script. */
  readonly argo: Verdict;
  /** Flux, kpt and others that go by kstatus. */
  readonly kstatus: Verdict;
}

/** Folder of what is meant for Argo CD's own repository. */
export const CUSTOMIZATIONS = join(repoFolder(), 'gitops/argocd/resource_customizations');

/** Returns the folder of a kind there. */
export function customizationOf({ apiVersion, kind }: { apiVersion: string; kind: string }): string {
  return join(CUSTOMIZATIONS, groupOf(apiVersion), kind);
}

/** Asks the interpreter and the library that the tools themselves use. The first call builds them, which takes minutes. */
export async function healthOf(objects: readonly KubernetesObject[]): Promise<Health[]> {
  const questions = objects.map((object) => ({
    object,
    script: readFileSync(join(customizationOf(object), 'health.lua'), 'utf8'),
  }));
  return JSON.parse(await done(await goTool('health'), [], { stdin: JSON.stringify(questions) })) as Health[];
}
