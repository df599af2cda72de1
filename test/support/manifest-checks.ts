import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { CustomResourceDefinition } from '../../src/contract/crd.js';
import type { Cluster } from './cluster.js';
import { goModule, runTool } from './commands.js';

type Schema = Readonly<Record<string, unknown>>;

/** A file as kubeconform looks for it: `SCHEMA_FILE` is its pattern. */
export interface SchemaFile {
  readonly name: string;
  readonly text: string;
}

const SCHEMA_FILE = '{{ .Group }}_{{ .ResourceAPIVersion }}_{{ .ResourceKind }}.json';

interface OpenApi {
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

interface GroupVersionKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/** Returns the schemas of all kinds of an API, as the API server has them; unknown fields are refused. */
export async function schemasOf(apiVersion: string, cluster: Cluster): Promise<SchemaFile[]> {
  const path = apiVersion.includes('/') ? `apis/${apiVersion}` : `api/${apiVersion}`;
  const { body } = await cluster.send('GET', `/openapi/v3/${path}`);
  const { schemas } = closed((body as unknown as OpenApi).components) as OpenApi['components'];
  return Object.values(schemas).flatMap((schema) => {
    const all = (schema['x-kubernetes-group-version-kind'] ?? []) as readonly GroupVersionKind[];
    const own = all.filter(({ group, version }) => [group, version].filter(Boolean).join('/') === apiVersion);
    return own.map(({ kind }) => file(apiVersion, kind, { ...schema, components: { schemas } }));
  });
}

/** Returns the schemas of custom resources. */
export function schemasIn({ spec }: CustomResourceDefinition): SchemaFile[] {
  return spec.versions.map(({ name, schema: { openAPIV3Schema } }) => {
    const identity = {
      apiVersion: { type: 'string' },
      kind: { type: 'string' },
      metadata: { type: 'object' },
    };
    const properties = { ...openAPIV3Schema.properties, ...identity };
    return file(
      `${spec.group}/${name}`,
      spec.names.kind,
      closed({ ...openAPIV3Schema, properties }) as Schema,
    );
  });
}

function file(apiVersion: string, kind: string, schema: Schema): SchemaFile {
  const [group = '', version = group] = apiVersion.split('/');
  return { name: `${group}_${version}_${kind.toLowerCase()}.json`, text: JSON.stringify(schema) };
}

/** Returns a schema that takes no field that it doesn't name. */
function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed);
  if (typeof value !== 'object' || value === null) return value;
  const schema = value as Schema;
  const members = Object.entries(schema).map(([key, member]) => [key, closed(member)] as const);
  const isOpen =
    schema.type !== 'object' ||
    typeof schema.properties !== 'object' ||
    schema.additionalProperties !== undefined ||
    schema['x-kubernetes-preserve-unknown-fields'] === true;
  return { ...Object.fromEntries(members), ...(!isOpen && { additionalProperties: false }) };
}

/** Returns the types of the Prometheus operator that are installed by `--monitoring`, as its release defines them. */
export async function monitoringCrds(): Promise<CustomResourceDefinition[]> {
  const folder = join(await goModule('prometheus-operator'), 'example/prometheus-operator-crd');
  return Promise.all(
    ['servicemonitors', 'prometheusrules'].map(async (plural) => {
      const text = await readFile(join(folder, `monitoring.coreos.com_${plural}.yaml`), 'utf8');
      return parse(text) as CustomResourceDefinition;
    }),
  );
}

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

/** Returns what kube-score finds in a file, each as `<kind> <check>`. */
export async function scored(file: string, folder: string): Promise<string[]> {
  const optional = ['container-seccomp-profile', 'container-ports-check'];
  const { stdout, stderr } = await runTool(
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
  const { stdout, stderr } = await runTool(
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
