import { createHash } from 'node:crypto';
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { defineCrd, defineKind } from 'cdk8s-reconstruct';
import type { Generated, KubernetesManifest, ObjectOf, PropsOf, References, SpecOf } from 'cdk8s-reconstruct';

const group = 'databases.example.com';
const text = { type: 'string' } as const;

/** The server, and the Secret with `PGUSER` and `PGPASSWORD` of its administrator, in the namespace of the custom resource. */
const settingsSchema = {
  type: 'object',
  properties: {
    host: { ...text, default: 'postgres.example.com' },
    adminSecret: { ...text, default: 'postgres-admin' },
  },
} as const;

const databaseCrd = defineCrd({
  ...{
    group,
    kind: 'Database',
    description: 'A database of a PostgreSQL server, and roles with rights in it.',
  },
  spec: { type: 'object', default: {}, properties: { dropOnDelete: { type: 'boolean', default: false } } },
  status: { owner: text },
});
const roleCrd = defineCrd({
  ...{ group, kind: 'Role', description: 'A login of a database, dropped when it is deleted.' },
  spec: {
    type: 'object',
    required: ['database', 'name'],
    properties: {
      ...{ database: text, name: { ...text, pattern: '^[a-z_][a-z0-9_]{0,40}$' } },
      privileges: { ...text, enum: ['READ', 'WRITE', 'OWNER'], default: 'OWNER' },
      secretTemplate: {
        ...{ type: 'object', default: {}, additionalProperties: text },
        description:
          'Texts for the Secret, with {{.Host}}, {{.Database}}, {{.Role}} and {{.Password}} in them.',
      },
    },
  },
  status: { role: text },
});

const hash = (value: unknown) =>
  createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 10);
const rolesOf = (database: string) => ({
  ...{ READ: `${database}-reader`, WRITE: `${database}-writer`, OWNER: `${database}-owner` },
});
const createRole = (role: string, options = '') =>
  `SELECT 'CREATE ROLE "${role}"${options}' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '${role}') \\gexec`;

interface Session {
  readonly metadata: { readonly name: string };
  readonly settings: { readonly host: string; readonly adminSecret: string };
  readonly generated?: Generated<'password'>;
}

/** Makes a Job that has psql read statements, which may be carried out again; others, or another password, are another Job. */
function psql(scope: Construct, { metadata, settings, generated }: Session, statements: readonly string[]) {
  const { host, adminSecret } = settings;
  const env = [
    ...[
      { name: 'PGHOST', value: host },
      { name: 'SQL', value: statements.join('\n') },
    ],
    ...(generated ? [{ name: 'PASSWORD', valueFrom: { secretKeyRef: generated.keys.password } }] : []),
  ];
  const container = {
    ...{ name: 'psql', image: 'postgres:17-alpine', imagePullPolicy: 'IfNotPresent', env },
    command: ['sh', '-c', 'printf %s "$SQL" | psql -v ON_ERROR_STOP=1 -v password="$PASSWORD" postgres'],
    envFrom: [{ secretRef: { name: adminSecret } }],
  };
  new ApiObject(scope, 'Job', {
    ...({ apiVersion: 'batch/v1', kind: 'Job' } as const),
    metadata: { name: `${metadata.name}-${hash([host, statements, generated?.checksum])}` },
    spec: { backoffLimit: 20, template: { spec: { restartPolicy: 'OnFailure', containers: [container] } } },
  } satisfies KubernetesManifest);
}

type DatabaseProps = PropsOf<typeof databaseCrd, { finalizes: true; settingsSchema: typeof settingsSchema }>;

class Database extends Construct {
  constructor(scope: Construct, id: string, { metadata, spec, settings, deleted }: DatabaseProps) {
    super(scope, id);
    const { name } = metadata;
    const { READ, WRITE, OWNER } = rolesOf(name);
    const granted = (rights: string, to: string) =>
      `ALTER DEFAULT PRIVILEGES FOR ROLE "${OWNER}" GRANT ${rights} ON TABLES TO "${to}";`;
    if (!deleted)
      psql(this, { metadata, settings }, [
        ...[READ, WRITE, OWNER].map((role) => createRole(role)),
        `SELECT 'CREATE DATABASE "${name}" OWNER "${OWNER}"' WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = '${name}') \\gexec`,
        ...[`\\connect "${name}"`, granted('SELECT', READ), granted('SELECT, INSERT, UPDATE, DELETE', WRITE)],
      ]);
    else if (spec.dropOnDelete)
      psql(this, { metadata, settings }, [
        `DROP DATABASE IF EXISTS "${name}" WITH (FORCE);`,
        `DROP ROLE IF EXISTS "${READ}", "${WRITE}", "${OWNER}";`,
      ]);
  }
}

const jobs = [{ apiVersion: 'batch/v1', kind: 'Job' }] as const;
const created = { phase: 'ready', reason: 'Created', message: 'It was created' } as const;

const areComplete = (children: readonly ObjectOf<'batch/v1', 'Job'>[]) =>
  children.length > 0 &&
  children.every(({ status: { conditions = [] } = {} }) =>
    conditions.some(({ type, status }) => type === 'Complete' && status === 'True'),
  );

export const database = defineKind({
  ...{ crd: databaseCrd, construct: Database, settingsSchema, finalizes: true, children: jobs },
  status: ({ cr: { metadata }, children }) =>
    areComplete(children)
      ? { fields: { owner: rolesOf(metadata.name).OWNER }, readiness: created }
      : { readiness: { phase: 'progressing', reason: 'Creating', message: 'The database is created' } },
});

interface Login {
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly spec: SpecOf<typeof roleCrd>;
}
const roleOf = ({ metadata: { namespace, name }, spec }: Login) =>
  `${spec.name}-${hash([namespace, name]).slice(0, 6)}`;

interface Composed {
  readonly cr: Login;
  readonly values: { readonly [name: string]: string };
  readonly settings: Session['settings'];
}
const fill = (template: string, { cr, values, settings }: Composed) => {
  const fields = {
    Host: settings.host,
    Database: cr.spec.database,
    Role: roleOf(cr),
    Password: values.password,
  };
  return template.replaceAll(/\{\{ *\.(\w+) *\}\}/g, (_, name: keyof typeof fields) => fields[name] ?? '');
};
const generated = {
  password: { length: 20 },
  uri: {
    text: (input: Composed) => fill('postgresql://{{.Role}}:{{.Password}}@{{.Host}}/{{.Database}}', input),
  },
  template: {
    texts: (input: Composed) =>
      Object.fromEntries(
        Object.entries(input.cr.spec.secretTemplate).map(([key, template]) => [key, fill(template, input)]),
      ),
  },
};
const references = {
  database: { apiVersion: `${group}/v1`, kind: 'Database', optional: true, name: (cr) => cr.spec.database },
} as const satisfies References<typeof roleCrd>;

type RoleParts = { references: typeof references; generated: typeof generated };
type RoleProps = PropsOf<
  typeof roleCrd,
  RoleParts & { finalizes: true; settingsSchema: typeof settingsSchema }
>;

class Role extends Construct {
  constructor(scope: Construct, id: string, props: RoleProps) {
    super(scope, id);
    const { metadata, spec, settings, references, deleted } = props;
    const role = roleOf(props);
    const rights = rolesOf(spec.database);
    const database = references.database as
      { readonly status?: SpecOf<typeof databaseCrd> & { owner?: string } } | undefined;
    if (deleted) {
      const owned = [`REASSIGN OWNED BY "${role}" TO "${rights.OWNER}"`, `DROP OWNED BY "${role}"`];
      const given = owned.map((one) => `SELECT '${one}' FROM pg_roles WHERE rolname = '${role}' \\gexec`);
      const before = database ? [`\\connect "${spec.database}"`, ...given] : [];
      psql(this, { metadata, settings }, [...before, `DROP ROLE IF EXISTS "${role}";`]);
      // Without a cluster, there is no status that says so.
    } else if (database && (!database.status || database.status.owner))
      psql(this, props, [
        ...[createRole(role, ' LOGIN'), `ALTER ROLE "${role}" PASSWORD :'password';`],
        `REVOKE "${Object.values(rights).join('", "')}" FROM "${role}";`,
        `GRANT "${rights[spec.privileges]}" TO "${role}";`,
      ]);
  }
}

export const role = defineKind({
  ...{
    crd: roleCrd,
    construct: Role,
    settingsSchema,
    references,
    generated,
    finalizes: true,
    children: jobs,
  },
  status: ({ cr, children }) => {
    const message = `Database ${cr.spec.database} or the login isn't ready`;
    return areComplete(children)
      ? { fields: { role: roleOf(cr) }, readiness: created }
      : { readiness: { phase: 'progressing', reason: 'Waiting', message } };
  },
});
