import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { writeFile } from 'node:fs/promises';
import { stringify } from 'yaml';
import { repoFolder } from '../../../sandbox/paths.js';
import type { FieldChange } from '../../../src/cli/diff/fields.js';
import { withFolder } from './commands.js';

export interface Run {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** What `--output json` prints of one object. */
export interface DiffObject {
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
  readonly action: string;
  readonly fields?: readonly FieldChange[];
  readonly object?: Readonly<Record<string, unknown>>;
  readonly reason?: string;
  readonly message?: string;
  readonly takes?: readonly { readonly field: string; readonly manager: string }[];
  readonly leaves?: readonly { readonly field: string; readonly manager: string }[];
}

export interface DiffDocument {
  readonly differs: boolean;
  readonly objects: readonly DiffObject[];
  readonly explanations: readonly {
    readonly summary: string;
    readonly tables?: readonly { readonly title: string; readonly rows: readonly (readonly string[])[] }[];
  }[];
}

/** Runs `reconstruct diff` as it is built, as somebody. */
export class Differ {
  constructor(
    private readonly kubeconfig: string,
    private readonly args: readonly string[] = [],
  ) {}

  async run(...args: readonly string[]): Promise<Run> {
    const file = join(repoFolder(), 'lib/bundle/reconstruct.mjs');
    const all = [file, 'diff', '--kubeconfig', this.kubeconfig, ...this.args, ...args];
    try {
      const { stdout, stderr } = await promisify(execFile)(process.execPath, all, { cwd: repoFolder() });
      return { code: 0, stdout, stderr };
    } catch (error) {
      const { code, stdout, stderr } = error as { code?: unknown; stdout: string; stderr: string };
      if (typeof code !== 'number') throw error;
      return { code, stdout, stderr };
    }
  }

  /** Of objects that stand in one file. */
  async of(objects: readonly object[], ...args: readonly string[]): Promise<Run> {
    return withFolder(async (folder) => {
      const source = join(folder, 'resources.yaml');
      await writeFile(source, objects.map((object) => `---\n${stringify(object)}`).join(''));
      return this.run(source, ...args);
    });
  }

  /** The same, for programs. @throws where there is no diff, with what was said instead */
  async json(
    objects: readonly object[],
    ...args: readonly string[]
  ): Promise<DiffDocument & { code: number }> {
    const { code, stdout, stderr } = await this.of(objects, '-o', 'json', ...args);
    if (stdout === '') throw new Error(`diff has ended with ${code}: ${stderr}`);
    return { code, ...(JSON.parse(stdout) as DiffDocument) };
  }
}

/** In a line each: what would become of which object. */
export function actions({ objects }: DiffDocument): string[] {
  return objects.map(({ action, kind, name }) => `${action} ${kind} ${name}`);
}

/** In a line each: which field of which object. */
export function changedPaths({ objects }: DiffDocument): string[] {
  return objects.flatMap(({ kind, fields = [] }) => fields.map(({ path }) => `${kind} ${path}`));
}
