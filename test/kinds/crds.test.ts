import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { kindsOnRequest } from '../../src/cli/config.js';
import { servedType, storedVersion, type StructuralSchema } from '../../src/contract/crd.js';
import { appServiceOfExample } from '../../src/kinds/app-service/kind.js';
import { appService, appServiceIn } from '../../src/kinds/app-service/kind.js';
import { builtInKinds } from '../../src/kinds/index.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import { streamIngress } from '../../src/kinds/stream-ingress/kind.js';
import { unknownRules } from '../../src/validate/cel/rules.js';
import { brokenRules as ofAppService } from './app-service/broken-rules.js';
import * as ofJobWatcher from './job-watcher/broken-rules.js';
import * as ofStreamIngress from './stream-ingress/broken-rules.js';

interface Field {
  readonly path: string;
  readonly schema: StructuralSchema;
}

function fieldsOf(schema: StructuralSchema, path: string): Field[] {
  const inner = Object.entries(schema.properties ?? {}).map(
    ([key, child]) => [child, path ? `${path}.${key}` : key] as const,
  );
  const { items, additionalProperties: values } = schema;
  if (items) inner.push([items, `${path}[]`]);
  if (typeof values === 'object') inner.push([values, `${path}.*`]);
  return [{ path, schema }, ...inner.flatMap(([child, childPath]) => fieldsOf(child, childPath))];
}

const pathsOf = (fields: readonly Field[]): string[] => fields.map(({ path }) => path);

const AppService = {
  kind: appService,
  name: 'appservices.kosmos.io',
  type: { apiVersion: 'kosmos.io/v1', kind: 'AppService', plural: 'appservices', namespaced: true },
  kilobytes: 160,
  rules: 41,
  broken: ofAppService.map(({ message }) => message),
  defaults: {
    'spec.ports[].protocol': 'TCP',
    'spec.autoscaling.minReplicas': 1,
    'spec.route.path': '/',
    'spec.disruption.maxUnavailable': 1,
    'spec.service.type': 'NodePort',
  },
};
const group = 'nginx-stream.jeffthecoder.xyz';
const StreamIngress = {
  kind: streamIngress,
  name: `streamingresses.${group}`,
  type: {
    apiVersion: `${group}/v1beta1`,
    kind: 'StreamIngress',
    plural: 'streamingresses',
    namespaced: true,
  },
  kilobytes: 32,
  rules: 6,
  broken: [...ofStreamIngress.brokenRules, ...ofStreamIngress.brokenChanges].map(({ message }) => message),
  defaults: { 'spec.protocol': 'TCP', 'spec.is_service': true },
};
const JobWatcher = {
  kind: jobWatcher,
  name: 'jobwatchers.batch.my.github.com',
  type: { apiVersion: 'batch.my.github.com/v1', kind: 'JobWatcher', plural: 'jobwatchers', namespaced: true },
  kilobytes: 64,
  rules: 8,
  broken: [
    ...ofJobWatcher.brokenRules.flatMap(({ messages }) => messages.filter((part) => part.length > 9)),
    ofJobWatcher.brokenStatus.message,
  ],
  defaults: {},
};

describe.each([AppService, StreamIngress, JobWatcher])('the CRD $name', (one) => {
  const { crd } = one.kind;
  const version = storedVersion(crd);
  const schema = version.schema.openAPIV3Schema;
  const fields = fieldsOf(schema, '');

  test('is served under the promised names, and small enough for kubectl apply', () => {
    expect(crd.metadata.name).toBe(one.name);
    expect(one.kind).toMatchObject({ name: one.type.kind.toLowerCase(), type: one.type });
    expect(version.subresources).toHaveProperty('status');
    expect(JSON.stringify(crd).length).toBeLessThan(one.kilobytes * 1024);
  });

  test('describes every field, says of every list how it is merged, and bounds texts, lists and maps', () => {
    // The API server allows no description on metadata.
    const undescribed = fields.filter(
      ({ path, schema: { description } }) => path !== 'metadata' && !description,
    );
    const lists = fields.filter(({ schema: { type } }) => type === 'array');
    const lacks = (type: string, keyword: string) =>
      fields.filter(
        ({ schema: field }) => field.type === type && !field.enum && field[keyword] === undefined,
      );
    const maps = fields.filter(({ schema: field }) => field.additionalProperties && !field.maxProperties);

    expect(pathsOf(undescribed)).toEqual([]);
    expect(pathsOf(lists.filter((list) => !list.schema['x-kubernetes-list-type']))).toEqual([]);
    expect(pathsOf([...lacks('string', 'maxLength'), ...lacks('array', 'maxItems'), ...maps])).toEqual([]);
  });

  test('gives every rule a message, which a test sees broken, and none that only the API server can judge', () => {
    const rules = fields.flatMap(
      (field) =>
        (field.schema['x-kubernetes-validations'] ?? []) as readonly { message?: string; reason?: string }[],
    );

    expect(rules.length).toBeGreaterThanOrEqual(one.rules);
    expect(rules.filter(({ message }) => !one.broken.some((part) => message?.includes(part)))).toEqual([]);
    // The API server leaves the message out where the reason is FieldValueDuplicate.
    expect(rules.filter(({ reason }) => reason === 'FieldValueDuplicate')).toEqual([]);
    expect(unknownRules(schema)).toEqual([]);
  });

  test('has defaults that make no field appear whose parent is left out, and a status that is taken for no finished one', () => {
    const defaults = fields.filter((field) => field.schema.default !== undefined);

    expect(Object.fromEntries(defaults.map(({ path, schema: field }) => [path, field.default]))).toEqual({
      ...one.defaults,
      status: { observedGeneration: -1 },
    });
  });
});

describe('AppService', () => {
  const version = storedVersion(appService.crd);
  const fields = fieldsOf(version.schema.openAPIV3Schema, '');

  test('has a short name, is scaled by its size, and found by its image', () => {
    expect(appService.crd.spec.names).toMatchObject({ shortNames: ['appsvc'], categories: ['all'] });
    expect(version.subresources?.scale).toEqual({
      specReplicasPath: '.spec.size',
      statusReplicasPath: '.status.replicas',
      labelSelectorPath: '.status.selector',
    });
    expect(version).toHaveProperty('selectableFields', [{ jsonPath: '.spec.image' }]);
  });

  test('has lists that are owned by item where Kubernetes owns them so', () => {
    const keys = fields.flatMap(({ path, schema }) => {
      const keysOfItems = schema['x-kubernetes-list-map-keys'];
      return keysOfItems ? [[path, keysOfItems]] : [];
    });

    expect(Object.fromEntries(keys)).toEqual({
      'spec.ports': ['port', 'protocol'],
      'spec.resources.claims': ['name'],
      'spec.envs': ['name'],
      'spec.imagePullSecrets': ['name'],
      'spec.topologySpread.constraints': ['topologyKey', 'whenUnsatisfiable'],
      'spec.files': ['path'],
      'status.conditions': ['type'],
    });
  });

  test('leaves no way to name the host that a probe goes to, or to ask for a privilege', () => {
    const forbidden = /\.(host|hostPath|hostPort|hostNetwork|securityContext|privileged|externalIPs)$/;

    expect(pathsOf(fields).filter((path) => forbidden.test(path))).toEqual([]);
  });
});

describe('AppService under a group of one’s own', () => {
  test('is the same but for its group, with no ambiguous name', () => {
    const { crd, type, ...kind } = appServiceIn('apps.example.net');
    const { metadata, spec, ...original } = appService.crd;
    const { shortNames: _, categories: __, ...names } = spec.names;

    expect(crd).toEqual({
      ...original,
      metadata: { ...metadata, name: 'appservices.apps.example.net' },
      spec: { ...spec, group: 'apps.example.net', names },
    });
    expect(type).toEqual({ ...appService.type, apiVersion: 'apps.example.net/v1' });
    expect(kind).toMatchObject({ name: 'appservice', children: appService.children });
  });

  test.each([
    ['Apps.example.net', "is not a domain name; write one of yours, such as 'apps.example.com'"],
    ['apps', "is not a domain name; write one of yours, such as 'apps.example.com'"],
    ['apps.k8s.io', "belongs to Kubernetes; write a domain of yours: 'apps.example.com'"],
    ['kosmos.io', 'comes with the command; leave it out, and use --kinds appservice'],
    ['app.example.com', 'comes with the command; leave it out, and use --kinds appservice.app.example.com'],
  ])('%s is none', (group, why) => {
    expect(() => appServiceIn(group)).toThrow(`appServiceIn: '${group}' ${why}`);
  });
});

describe('AppService of app.example.com', () => {
  test('has a CRD that the script makes of that of kosmos.io', () => {
    const folder = mkdtempSync(join(tmpdir(), 'crds-'));
    onTestFinished(() => {
      rmSync(folder, { recursive: true });
    });
    const root = new URL('../../', import.meta.url);
    const fresh = join(folder, 'crd.yaml');
    const committed = new URL('crds/optional/appservices.app.example.com.yaml', root);

    execFileSync(process.execPath, [fileURLToPath(new URL('scripts/crds.mjs', root)), fresh]);

    expect(readFileSync(committed, 'utf8'), 'stale: run "npm run crds" and commit what it changes').toBe(
      readFileSync(fresh, 'utf8'),
    );
  });

  test('is the same but for its group, in two versions, with no ambiguous name, and comes on request only', async () => {
    const { crd, type } = appServiceOfExample;
    const { children, construct } = appService;
    const original = storedVersion(appService.crd);

    expect(crd.spec.names).toEqual({
      ...{ kind: 'AppService', listKind: 'AppServiceList', plural: 'appservices', singular: 'appservice' },
    });
    expect(crd.spec.versions).toEqual([
      { ...original, name: 'v1', served: true, storage: true },
      {
        ...{ ...original, name: 'v1alpha1', served: true, storage: false, deprecated: true },
        deprecationWarning: expect.stringContaining('use app.example.com/v1') as string,
      },
    ]);
    expect(JSON.stringify(crd).length).toBeLessThan(160 * 1024);
    expect(appServiceOfExample).toMatchObject({ name: 'appservice', children, construct });
    expect(type).toEqual(servedType(crd, storedVersion(crd)));
    expect(type.apiVersion).toBe('app.example.com/v1');
    expect(builtInKinds).not.toContain(appServiceOfExample);
    expect(await kindsOnRequest['appservice.app.example.com']!()).toBe(appServiceOfExample);
  });
});
