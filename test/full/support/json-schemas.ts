import type { CustomResourceDefinition } from '../../../src/contract/crd.js';
import type { Cluster } from './cluster.js';

type Schema = Readonly<Record<string, unknown>>;

/** A file as kubeconform looks for it: `SCHEMA_FILE` is its pattern. */
export interface SchemaFile {
  readonly name: string;
  readonly text: string;
}

export const SCHEMA_FILE = '{{ .Group }}_{{ .ResourceAPIVersion }}_{{ .ResourceKind }}.json';

interface OpenApi {
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

interface GroupVersionKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/** The schemas of all kinds of an API, as the API server has them; unknown fields are refused. */
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

/** The schemas of custom resources. */
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

/** A schema that takes no field that it doesn't name. */
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
