import { hash } from 'node:crypto';
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { z } from 'zod';
import { defineCrd, defineKind, dependencyReadiness, worstReadiness } from 'cdk8s-reconstruct';
import type { Generated, GeneratedParts, KubernetesManifest, PropsOf, References } from 'cdk8s-reconstruct';

const group = 'databases.example.com';
/** The server, and the Secret with `PGUSER` and `PGPASSWORD` of its administrator, in the namespace of the custom resource. */
const settingsSchema = z.object({
  host: z.string().default('postgres.example.com'),
  adminSecret: z.string().default('postgres-admin'),
});
const databaseCrd = defineCrd({
  ...{ group, kind: 'Database', description: 'A database of PostgreSQL, and roles with rights in it.' },
  spec: z.object({ dropOnDelete: z.boolean().default(false) }).prefault({}),
  status: { owner: z.string() },
});
const roleCrd = defineCrd({
  ...{ group, kind: 'Role', description: 'A login of a database, dropped when it is deleted.' },
  spec: z.object({
    database: z.string(),
    name: z.string().regex(/^[a-z_][a-z0-9_]{0,40}$/),
    privileges: z.enum(['READ', 'WRITE', 'OWNER']).default('OWNER'),
    secretTemplate: z
      .record(z.string(), z.string())
      .default({})
      .describe('Texts for the Secret, with {{.Host}} and its other values.'),
  }),
  status: { role: z.string() },
});

const job = { apiVersion: 'batch/v1', kind: 'Job' } as const;
const shared = { settingsSchema, finalizes: true } as const;
type DatabaseProps = PropsOf<typeof databaseCrd, typeof shared>;
type Session = Pick<DatabaseProps, 'metadata' | 'settings'> & { readonly generated?: Generated<'password'> };

const digest = (value: unknown) => hash('sha256', JSON.stringify(value)).slice(0, 10);
const rolesOf = (of: string) => ({ READ: `${of}-reader`, WRITE: `${of}-writer`, OWNER: `${of}-owner` });
const createRole = (role: string, options = '') =>
  `SELECT 'CREATE ROLE "${role}"${options}' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '${role}') \\gexec`;

/** Makes a Job that has psql read statements, which may be carried out again; others, or another password, are another Job. */
function psql(scope: Construct, { metadata, settings, generated }: Session, sql: readonly string[]) {
  const container = {
    ...{ name: 'psql', image: 'postgres:17-alpine', imagePullPolicy: 'IfNotPresent' },
    command: ['sh', '-c', 'printf %s "$SQL" | psql -v ON_ERROR_STOP=1 -v password="$PASSWORD" postgres'],
    envFrom: [{ secretRef: { name: settings.adminSecret } }],
    env: [
      { name: 'PGHOST', value: settings.host },
      { name: 'SQL', value: sql.join('\n') },
      ...(generated ? [{ name: 'PASSWORD', valueFrom: { secretKeyRef: generated.keys.password } }] : []),
    ],
  };
  new ApiObject(scope, 'Job', {
    ...job,
    metadata: { name: `${metadata.name}-${digest([settings.host, sql, generated?.checksum])}` },
    spec: { backoffLimit: 20, template: { spec: { restartPolicy: 'OnFailure', containers: [container] } } },
  } satisfies KubernetesManifest);
}

/** Reports what was made, once its Job has completed. */
function made<Fields>(jobs: Parameters<typeof worstReadiness>[0], fields: Fields) {
  const waits = { phase: 'progressing', reason: 'Waiting', message: 'There is no database yet' } as const;
  const readiness = worstReadiness(jobs.length > 0 ? jobs : [waits]);
  return { readiness, ...(readiness.phase === 'ready' && { fields }) };
}

class Database extends Construct {
  constructor(scope: Construct, id: string, { metadata, spec, settings, deleted }: DatabaseProps) {
    super(scope, id);
    const { name } = metadata;
    const { READ, WRITE, OWNER } = rolesOf(name);
    const grant = `ALTER DEFAULT PRIVILEGES FOR ROLE "${OWNER}" GRANT`;
    const create = [
      ...[READ, WRITE, OWNER].map((role) => createRole(role)),
      `SELECT 'CREATE DATABASE "${name}" OWNER "${OWNER}"' WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = '${name}') \\gexec`,
      `\\connect "${name}"`,
      `${grant} SELECT ON TABLES TO "${READ}";`,
      `${grant} SELECT, INSERT, UPDATE, DELETE ON TABLES TO "${WRITE}";`,
    ];
    const roles = `DROP ROLE IF EXISTS "${READ}", "${WRITE}", "${OWNER}";`;
    const drop = [`DROP DATABASE IF EXISTS "${name}" WITH (FORCE);`, roles];
    if (!deleted || spec.dropOnDelete) psql(this, { metadata, settings }, deleted ? drop : create);
  }
}
export const database = defineKind({
  ...{ ...shared, crd: databaseCrd, construct: Database, children: [job] },
  status: ({ cr, children }) =>
    made(children.map(dependencyReadiness), { owner: rolesOf(cr.metadata.name).OWNER }),
});

const roleOf = ({ metadata: { namespace, name }, spec }: PropsOf<typeof roleCrd>) =>
  `${spec.name}-${digest([namespace, name]).slice(0, 6)}`;
const generated = {
  password: { length: 20 },
  host: { text: ({ settings }) => settings.host },
  database: { text: ({ cr }) => cr.spec.database },
  role: { text: ({ cr }) => roleOf(cr) },
  uri: { text: ({ values: of }) => `postgresql://${of.role}:${of.password}@${of.host}/${of.database}` },
  jdbc: { text: ({ values: of }) => `jdbc:postgresql://${of.host}/${of.database}` },
  template: {
    texts: ({ cr: { spec }, values }) => {
      const fill = (text: string) =>
        text.replaceAll(/\{\{ *\.(\w+) *\}\}/g, (_, name: string) => values[name.toLowerCase()] ?? '');
      return Object.fromEntries(Object.entries(spec.secretTemplate).map(([key, text]) => [key, fill(text)]));
    },
  },
} as const satisfies GeneratedParts<typeof roleCrd, typeof settingsSchema>;
const references = {
  database: { apiVersion: `${group}/v1`, kind: 'Database', optional: true, name: (cr) => cr.spec.database },
} as const satisfies References<typeof roleCrd>;
const parts = { ...shared, references, generated } as const;

class Role extends Construct {
  constructor(scope: Construct, id: string, props: PropsOf<typeof roleCrd, typeof parts>) {
    super(scope, id);
    const { metadata, spec, settings, references, deleted } = props;
    const database = references.database as { status?: { owner?: string } } | undefined;
    const role = roleOf(props);
    const rights = rolesOf(spec.database);
    if (deleted) {
      const owned = [`REASSIGN OWNED BY "${role}" TO "${rights.OWNER}"`, `DROP OWNED BY "${role}"`];
      const given = owned.map((one) => `SELECT '${one}' FROM pg_roles WHERE rolname = '${role}' \\gexec`);
      const before = database ? [`\\connect "${spec.database}"`, ...given] : [];
      psql(this, { metadata, settings }, [...before, `DROP ROLE IF EXISTS "${role}";`]);
      // Without a cluster, there is no status that says so.
    } else if (database && (!database.status || database.status.owner))
      psql(this, props, [
        createRole(role, ' LOGIN'),
        `ALTER ROLE "${role}" PASSWORD :'password';`,
        `REVOKE "${Object.values(rights).join('", "')}" FROM "${role}";`,
        `GRANT "${rights[spec.privileges]}" TO "${role}";`,
      ]);
  }
}
export const role = defineKind({
  ...{ ...parts, crd: roleCrd, construct: Role, children: [job] },
  status: ({ cr, children }) => made(children.map(dependencyReadiness), { role: roleOf(cr) }),
});
