// @ts-check
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { checksumAnnotations, defineCrd, defineKind, selectorLabels } from 'cdk8s-reconstruct';

const crd = defineCrd({
  group: 'journals.example.com',
  kind: 'Journal',
  description: 'An application with a database of its own.',
  spec: /** @type {const} */ ({
    type: 'object',
    required: ['image'],
    properties: {
      image: {
        type: 'string',
        minLength: 1,
        description: 'Image; its argument `migrate` changes the schema.',
      },
      replicas: { type: 'integer', minimum: 0, default: 2, description: 'Pods of the application.' },
    },
  }),
});

const generated = /** @type {const} */ ({ password: { length: 24 } });
/** @typedef {import('cdk8s-reconstruct').PropsOf<typeof crd, { generated: typeof generated }>} Props */

/** A database, its migration, and the application, each once the one before is ready. */
class Journal extends Construct {
  /**
   * @param {Construct} scope
   * @param {string} id
   * @param {Props} props
   */
  constructor(scope, id, { metadata: { name }, spec: { image, replicas }, generated }) {
    super(scope, id);
    const metadata = { name };
    const database = `${name}-db`;
    const password = { valueFrom: { secretKeyRef: generated.keys.password } };
    const imagePullPolicy = 'IfNotPresent';
    const dataPath = '/var/lib/postgresql/data';
    const env = [
      { name: 'PGHOST', value: database },
      { name: 'PGPASSWORD', ...password },
    ];
    const labelsOf = (/** @type {string} */ part) => ({ ...selectorLabels(crd, name), part });
    const selectorOf = (/** @type {string} */ part) => ({ matchLabels: labelsOf(part) });

    new ApiObject(this, 'DatabaseService', {
      ...{ apiVersion: 'v1', kind: 'Service', metadata: { name: database } },
      spec: { selector: labelsOf('database'), ports: [{ name: 'postgres', port: 5432 }] },
    });
    const server = new ApiObject(this, 'Database', {
      ...{ apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { name: database } },
      spec: {
        serviceName: database,
        selector: selectorOf('database'),
        template: {
          metadata: { labels: labelsOf('database') },
          spec: {
            containers: [
              {
                ...{ name: 'postgres', image: 'postgres:17', imagePullPolicy },
                env: [
                  // Below the mount: a new volume may not be empty.
                  { name: 'PGDATA', value: `${dataPath}/pgdata` },
                  { name: 'POSTGRES_PASSWORD', ...password },
                ],
                volumeMounts: [{ name: 'data', mountPath: dataPath }],
              },
            ],
          },
        },
        volumeClaimTemplates: [
          {
            metadata: { name: 'data' },
            spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
          },
        ],
      },
    });
    const migration = new ApiObject(this, 'Migration', {
      ...{ apiVersion: 'batch/v1', kind: 'Job', metadata: { name: `${name}-migration` } },
      spec: {
        template: {
          spec: {
            restartPolicy: 'OnFailure',
            containers: [{ name: 'migrate', image, imagePullPolicy, args: ['migrate'], env }],
          },
        },
      },
    });
    const application = new ApiObject(this, 'Application', {
      ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata },
      spec: {
        replicas,
        selector: selectorOf('application'),
        template: {
          metadata: {
            labels: labelsOf('application'),
            annotations: checksumAnnotations({ generated }),
          },
          spec: { containers: [{ name: 'application', image, imagePullPolicy, env }] },
        },
      },
    });
    migration.addDependency(server);
    application.addDependency(migration);
  }
}

export const journal = defineKind({
  ...{ crd, generated, construct: Journal },
  children: [
    { apiVersion: 'v1', kind: 'Service' },
    { apiVersion: 'apps/v1', kind: 'StatefulSet' },
    // Its template is immutable: another image is another migration.
    { apiVersion: 'batch/v1', kind: 'Job', recreate: true },
    { apiVersion: 'apps/v1', kind: 'Deployment' },
  ],
});
