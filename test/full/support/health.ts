import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { repoFolder } from '../../../sandbox/paths.js';
import { groupOf } from '../../../src/contract/object.js';
import type { KubernetesObject } from '../../../src/contract/object.js';
import { goProgram } from './go-program.js';

export interface Verdict {
  readonly status: string;
  readonly message: string;
}

/** How GitOps tools see a custom resource. */
export interface Health {
  /** Argo CD, with our script. */
  readonly argo: Verdict;
  /** Flux, kpt and others that go by kstatus. */
  readonly kstatus: Verdict;
}

/** Where what is meant for Argo CD's own repository lies. */
export const CUSTOMIZATIONS = join(repoFolder(), 'gitops/argocd/resource_customizations');

/** The folder of a kind there. */
export function customizationOf({ apiVersion, kind }: { apiVersion: string; kind: string }): string {
  return join(CUSTOMIZATIONS, groupOf(apiVersion), kind);
}

/** Asks the interpreter and the library that the tools themselves use. The first call builds them, which takes minutes. */
export async function healthOf(objects: readonly KubernetesObject[]): Promise<Health[]> {
  const questions = objects.map((object) => ({
    object,
    script: readFileSync(join(customizationOf(object), 'health.lua'), 'utf8'),
  }));
  const child = spawn(await goProgram({ name: 'health', folder: 'test/full/support/health' }), {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  child.stdin.end(JSON.stringify(questions));
  const [out, errors, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close') as Promise<[number | null]>,
  ]);
  if (code !== 0) throw new Error(errors);
  return JSON.parse(out) as Health[];
}
