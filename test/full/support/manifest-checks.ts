import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { goTool } from './go-tools.js';
import { SCHEMA_FILE } from './json-schemas.js';
import type { SchemaFile } from './json-schemas.js';

/** The lowest grade that kube-score has nothing to say about; 5 is a warning, 1 is critical. */
const GOOD = 7;

interface Scored {
  readonly object_name: string;
  readonly type_meta: { readonly kind: string };
  readonly checks: readonly {
    readonly check: { readonly id: string };
    readonly grade: number;
    readonly skipped: boolean;
  }[];
}

/** What kube-score finds in a file, each as `<kind> <check>`. */
export async function scored(file: string, folder: string): Promise<string[]> {
  const optional = ['container-seccomp-profile', 'container-ports-check'];
  const { stdout, stderr } = await goTool(
    'kube-score',
    [
      ...['score', '--output-format', 'json', '--kubernetes-version', 'v1.34'],
      ...optional.flatMap((check) => ['--enable-optional-test', check]),
      file,
    ],
    folder,
  );
  if (!stdout.startsWith('[')) throw new Error(`kube-score: ${stderr}${stdout}`);
  const objects = JSON.parse(stdout) as readonly Scored[];
  if (objects.length === 0) throw new Error(`kube-score has found nothing in ${file}`);
  return objects.flatMap(({ type_meta: { kind }, checks }) =>
    checks.filter(({ grade, skipped }) => !skipped && grade < GOOD).map(({ check }) => `${kind} ${check.id}`),
  );
}

interface Conformity {
  readonly resources: readonly {
    readonly kind: string;
    readonly name: string;
    readonly status: string;
    readonly msg: string;
  }[];
  readonly summary: { readonly valid: number };
}

export interface Conformed {
  readonly valid: number;
  /** What isn't, with the reason. */
  readonly problems: readonly string[];
}

/** Judges files by schemas; an object without a schema is a problem too. */
export async function conformed(
  files: readonly string[],
  schemas: readonly SchemaFile[],
  folder: string,
): Promise<Conformed> {
  const place = join(folder, 'schemas');
  await mkdir(place, { recursive: true });
  await Promise.all(schemas.map(({ name, text }) => writeFile(join(place, name), text)));
  const { stdout, stderr } = await goTool(
    'kubeconform',
    ['-output', 'json', '-summary', '-schema-location', join(place, SCHEMA_FILE), ...files],
    folder,
  );
  if (!stdout.startsWith('{')) throw new Error(`kubeconform: ${stderr}${stdout}`);
  const { resources, summary } = JSON.parse(stdout) as Conformity;
  return {
    valid: summary.valid,
    problems: resources.map(({ kind, name, status, msg }) => `${kind} ${name}: ${status}: ${msg}`),
  };
}
