import type { AnyObject } from '../../../src/contract/object.js';
import { resourceType } from '../../../src/contract/resource.js';
import { collection } from './cluster.js';
import type { Cluster } from './cluster.js';

interface Schema {
  readonly $ref?: string;
  readonly allOf?: readonly Schema[];
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
}

type Path = readonly (string | number)[];

interface Field {
  readonly path: Path;
  readonly value: unknown;
}

const EMPTY: Readonly<Record<string, unknown>> = { array: [], object: {} };

export interface VariantsProps {
  readonly namespace: string;
  /** An object of the type that is accepted; fields of its list items are tried too. */
  readonly base: AnyObject;
  /** The path of a field whose fields aren't tried, as in `spec.template`. @default - all are */
  readonly butBelow?: string;
}

/**
 * Objects that together have every field of the spec of a type once as an empty list or map and once as null, as far as the
 * API server accepts it.
 */
export async function acceptedVariants(cluster: Cluster, props: VariantsProps): Promise<AnyObject[]> {
  const { base, butBelow } = props;
  const groups = new Map<string, Field[]>();
  for (const field of await fieldsOf(cluster, base)) {
    if (butBelow !== undefined && textOf(field.path).startsWith(`${butBelow}.`)) continue;
    const group = `${JSON.stringify(field.value)} ${missing(base, field.path)}`;
    groups.set(group, [...(groups.get(group) ?? []), field]);
  }
  const trial = new Trial(cluster, props);
  return (await Promise.all([...groups.values()].map((fields) => trial.accepted(fields)))).flat();
}

/** From the API server's own schema. */
async function fieldsOf(cluster: Cluster, base: AnyObject): Promise<Field[]> {
  const { apiVersion, kind } = base;
  const root = apiVersion.includes('/') ? `apis/${apiVersion}` : `api/${apiVersion}`;
  const { body } = await cluster.send('GET', `/openapi/v3/${root}`);
  const { schemas } = (body as unknown as { components: { schemas: Record<string, Schema> } }).components;
  const [group = '', version = ''] = apiVersion.includes('/') ? apiVersion.split('/') : ['', apiVersion];
  const own = Object.values(schemas).find((schema) => {
    const known = (schema as { 'x-kubernetes-group-version-kind'?: object[] })[
      'x-kubernetes-group-version-kind'
    ];
    return JSON.stringify(known) === JSON.stringify([{ group, kind, version }]);
  })!;
  const resolve = (schema: Schema): Schema => {
    const ref = schema.$ref ?? schema.allOf?.[0]?.$ref;
    return ref === undefined ? schema : resolve(schemas[ref.split('/').at(-1)!]!);
  };
  const walk = (schema: Schema, path: Path, value: unknown): Field[] => {
    const { properties = {}, items } = resolve(schema);
    if (items) return Array.isArray(value) ? walk(items, [...path, 0], value[0]) : [];
    return Object.entries(properties).flatMap(([name, property]) => {
      const below = [...path, name];
      const present = (value as Record<string, unknown> | undefined)?.[name];
      const empty = EMPTY[resolve(property).type ?? ''];
      const here = [null, ...(empty === undefined ? [] : [empty])].map((one) => ({
        path: below,
        value: one,
      }));
      return [...here, ...walk(property, below, present)];
    });
  };
  return walk({ properties: { spec: own.properties!.spec! } }, [], base);
}

/** How many of the maps around a field the base lacks; -1, where it has the field itself. */
function missing(base: unknown, path: Path): number {
  let value = base;
  for (const [depth, name] of path.entries()) {
    if (value === undefined) return path.length - depth;
    value = (value as Record<string | number, unknown>)[name];
  }
  return value === undefined ? 0 : -1;
}

class Trial {
  constructor(
    private readonly cluster: Cluster,
    private readonly props: VariantsProps,
  ) {}

  /** Puts as many of the fields as possible in one object, and what is in the way of each other in further ones. */
  async accepted(fields: readonly Field[]): Promise<AnyObject[]> {
    const taken: Field[] = [];
    const others: Field[] = [];
    await this.take(fields, taken, others);
    if (taken.length > 0) return [this.with(taken), ...(await this.accepted(others))];
    const alone: AnyObject[] = [];
    for (const field of fields)
      if ((await this.refusal([field])) === undefined) alone.push(this.with([field]));
    return alone;
  }

  private async take(some: readonly Field[], taken: Field[], others: Field[]): Promise<void> {
    if (some.length === 0) return;
    const refusal = await this.refusal([...taken, ...some]);
    if (refusal === undefined) {
      taken.push(...some);
      return;
    }
    const named = some.filter(({ path }) => refusal.includes(textOf(path)));
    if (named.length > 0 || some.length === 1) {
      others.push(...(named.length > 0 ? named : some));
      await this.take(named.length > 0 ? some.filter((field) => !named.includes(field)) : [], taken, others);
    } else {
      await this.take(some.slice(0, some.length / 2), taken, others);
      await this.take(some.slice(some.length / 2), taken, others);
    }
  }

  /** The message of the API server; nothing if it accepts them. */
  private async refusal(fields: readonly Field[]): Promise<string | undefined> {
    const { namespace, base } = this.props;
    const { status, body } = await this.cluster.send(
      'PATCH',
      `${collection(resourceType(base), namespace)}/tried`,
      {
        body: { ...this.with(fields), metadata: { name: 'tried' } },
        contentType: 'application/apply-patch+yaml',
        query: { dryRun: 'All', fieldManager: 'tried', force: 'true' },
      },
    );
    return status < 300 ? undefined : String(body.message);
  }

  private with(fields: readonly Field[]): AnyObject {
    return withFields(this.props.base, fields);
  }
}

function withFields(base: AnyObject, fields: readonly Field[]): AnyObject {
  const object = structuredClone(base);
  for (const { path, value } of fields) {
    let at = object as unknown as Record<string | number, unknown>;
    for (const name of path.slice(0, -1)) at = (at[name] ??= {}) as Record<string | number, unknown>;
    at[path.at(-1)!] = structuredClone(value);
  }
  return object;
}

function textOf(path: Path): string {
  return path
    .map((name) => (typeof name === 'number' ? `[${name}]` : `.${name}`))
    .join('')
    .slice(1);
}
