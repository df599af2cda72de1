// @ts-check
import { createHash } from 'node:crypto';
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { defineCrd, defineKind } from 'cdk8s-reconstruct';

const text = /** @type {const} */ ({ type: 'string' });
const name = /** @type {const} */ ({ type: 'string', pattern: '^[a-z_][a-z0-9_]{0,40}$' });
const group = 'databases.example.com';

/** The server, and the Secret with `PGUSER` and `PGPASSWORD` of its administrator, in the namespace of the custom resource. */
const settingsSchema = /** @type {const} */ ({
  type: 'object',
  properties: {
    host: { type: 'string', default: 'postgres.example.com' },
    adminSecret: { type: 'string', default: 'postgres-admin' },
  },
});

const databaseCrd = defineCrd({
  ...{ group, kind: 'Database', description: 'A database of a PostgreSQL server, with a role that owns it.' },
  spec: /** @type {const} */ ({
    type: 'object',
    required: ['name'],
    properties: { name, dropOnDelete: { type: 'boolean', default: false } },
  }),
  status: /** @type {const} */ ({ owner: text }),
});
const roleCrd = defineCrd({
  ...{ group, kind: 'Role', description: 'A login of a database, dropped when it is deleted.' },
  spec: /** @type {const} */ ({
    type: 'object',
    required: ['database', 'name'],
    properties: {
      ...{ database: text, name },
      privileges: { type: 'string', enum: ['READ', 'WRITE', 'OWNER'], default: 'OWNER' },
    },
  }),
  status: /** @type {const} */ ({ role: text }),
});

const hash = (/** @type {unknown} */ value) =>
  createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 10);

/**
 * A Job that runs SQL; another text is another Job.
 * @param {Construct} scope
 * @param {string} id
 * @param {{ name: string; settings: { host: string; adminSecret: string }; sql: string; made?: string; env?: object[] }} props
 */
function psql(scope, id, { name, settings: { host, adminSecret }, sql, made, env = [] }) {
  const container = {
    ...{ name: 'psql', image: 'postgres:17-alpine', imagePullPolicy: 'IfNotPresent', env },
    args: ['psql', '-v', 'ON_ERROR_STOP=1', '-h', host, '-d', 'postgres', '-c', sql],
    envFrom: [{ secretRef: { name: adminSecret } }],
  };
  new ApiObject(scope, id, {
    ...{ apiVersion: 'batch/v1', kind: 'Job', metadata: { name: `${name}-${hash([host, sql, made])}` } },
    spec: {
      backoffLimit: 20,
      template: { spec: { restartPolicy: 'OnFailure', containers: [container] } },
    },
  });
}

const ownerOf = (/** @type {string} */ database) => `${database}-owner`;

class Database extends Construct {
  /**
   * @param {Construct} scope
   * @param {string} id
   * @param {import('cdk8s-reconstruct').PropsOf<typeof databaseCrd, { finalizes: true; settingsSchema: typeof settingsSchema }>} props
   */
  constructor(scope, id, { metadata, spec: { name: database, dropOnDelete }, settings, deleted }) {
    super(scope, id);
    const { name } = metadata;
    const owner = ownerOf(database);
    if (!deleted)
      psql(this, 'Create', {
        ...{ name, settings },
        sql: `CREATE ROLE "${owner}"; CREATE DATABASE "${database}" OWNER "${owner}"`,
      });
    else if (dropOnDelete)
      psql(this, 'Drop', {
        name,
        settings,
        sql: `DROP DATABASE IF EXISTS "${database}"; DROP ROLE "${owner}"`,
      });
  }
}

const jobs = /** @type {const} */ ([{ apiVersion: 'batch/v1', kind: 'Job' }]);
const isComplete = (/** @type {readonly { status?: any }[]} */ children) =>
  children.length > 0 &&
  children.every(({ status }) =>
    status?.conditions?.some((/** @type {any} */ one) => one.type === 'Complete' && one.status === 'True'),
  );

export const database = defineKind({
  ...{ crd: databaseCrd, construct: Database, settingsSchema, finalizes: true, children: jobs },
  status: ({ cr: { spec }, children }) =>
    isComplete(children)
      ? {
          fields: { owner: ownerOf(spec.name) },
          readiness: { phase: 'ready', reason: 'Created', message: 'It is there' },
        }
      : { readiness: { phase: 'progressing', reason: 'Creating', message: 'It is being created' } },
});

const roleOf = (
  /** @type {{ metadata: { name: string; namespace?: string }; spec: { name: string } }} */ {
    metadata,
    spec,
  },
) => `${spec.name}-${hash([metadata.namespace, metadata.name]).slice(0, 6)}`;
const references = /** @type {const} */ ({
  database: {
    ...{ apiVersion: `${group}/v1`, kind: 'Database', optional: true },
    name: (
      /** @type {import('cdk8s-reconstruct').CustomResource<import('cdk8s-reconstruct').SpecOf<typeof roleCrd>>} */ cr,
    ) => cr.spec.database,
  },
});
const generated = {
  password: { length: 20 },
  uri: {
    /** @param {{ cr: any; values: Readonly<Record<string, string>>; settings: any }} input */
    text: ({ cr, values, settings }) =>
      `postgresql://${roleOf(cr)}:${values.password}@${settings.host}/${cr.spec.database}`,
  },
};

class Role extends Construct {
  /**
   * @param {Construct} scope
   * @param {string} id
   * @param {import('cdk8s-reconstruct').PropsOf<typeof roleCrd, { finalizes: true; settingsSchema: typeof settingsSchema; references: typeof references; generated: typeof generated }>} props
   */
  constructor(scope, id, { metadata, spec, settings, references: { database }, generated, deleted }) {
    super(scope, id);
    const { name } = metadata;
    const role = roleOf({ metadata, spec });
    if (deleted) {
      // With its database, its rights have gone; nothing was made before that.
      if (database) psql(this, 'Drop', { name, settings, sql: `DROP ROLE IF EXISTS "${role}"` });
      return;
    }
    const { spec: { name: databaseName = '' } = {}, status } = /** @type {any} */ (database ?? {});
    // Without a cluster, there is no status that says so.
    if (!database || (status && !status.owner)) return;
    const rights = { READ: 'pg_read_all_data', WRITE: 'pg_write_all_data', OWNER: ownerOf(databaseName) };
    psql(this, 'Create', {
      ...{ name, settings, made: generated.checksum },
      sql: `CREATE ROLE "${role}" LOGIN; ALTER ROLE "${role}" PASSWORD :'password'; GRANT "${rights[spec.privileges]}" TO "${role}"`,
      env: [{ name: 'password', valueFrom: { secretKeyRef: generated.keys.password } }],
    });
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
  status: ({ cr, children }) =>
    isComplete(children)
      ? {
          fields: { role: roleOf(cr) },
          readiness: { phase: 'ready', reason: 'Created', message: 'It may log in' },
        }
      : {
          readiness: {
            phase: 'progressing',
            reason: 'Waiting',
            message: `Database ${cr.spec.database} or the login isn't ready`,
          },
        },
});
