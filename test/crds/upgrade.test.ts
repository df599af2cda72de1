import { readdirSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { loadCrd } from '../../src/author/load-crd.js';
import type { CustomResourceDefinition } from '../../src/contract/crd.js';
import { upgradeBreaks } from './upgrade-check.js';

const crds = new URL('../../crds/', import.meta.url);
const released = readdirSync(new URL('released/', crds));

/**
 * What may be refused though the last release took it, and why. To be emptied at each release, with
 * `crds/released/` made anew.
 */
const ACCEPTED: Readonly<Record<string, string>> = {
  // The one rule that refuses what worked: a dot, or a digit at the start, in the name of an AppService without ports.
  'v1 rule added': 'RFC 1035 for every name, since a Service of the same name may be asked for at any time',
  'v1 spec rule added': 'each speaks of a new field, or of what is always so without one',
  'v1 apiVersion maxLength tightened': 'the API server takes no other value than its own',
  'v1 kind maxLength tightened': 'the API server takes no other value than its own',
  'v1 spec.ports rule added': 'the API server refused the Service, or the Deployment',
  'v1 spec.ports[].targetPort rule added': 'the API server refused the Service',
  'v1 spec.resources.limits rule added': 'the API server refused the Deployment',
  'v1 spec.resources.requests rule added': 'the API server refused the Deployment',
  'v1 spec.envs[] rule added': 'the API server refused the Deployment',
  'v1 spec.envs[].name maxLength tightened': 'more than fits into a request',
  'v1 spec.envs[].value maxLength tightened': 'more than fits into a request',
  'v1 spec.envs[].valueFrom rule added': 'the API server refused the Deployment',
  'v1 spec.envs[].valueFrom.fieldRef.apiVersion maxLength tightened': 'the API server refused the Deployment',
  'v1 spec.envs[].valueFrom.fieldRef.fieldPath maxLength tightened': 'the API server refused the Deployment',
  'v1 spec.envs[].valueFrom.resourceFieldRef.containerName maxLength tightened':
    'more than fits into a request',
  'v1 spec.envs[].valueFrom.resourceFieldRef.resource maxLength tightened': 'more than fits into a request',
  'v1 spec.envs[].valueFrom.fileKeyRef.volumeName maxLength tightened':
    'the API server refused the Deployment',
  'v1 spec.envs[].valueFrom.fileKeyRef.path maxLength tightened': 'more than fits into a request',
  'v1 status.conditions maxItems tightened': 'the operator writes six',
  'v1 status.conditions[].lastTransitionTime maxLength tightened': 'no time is as long',
};

test.each(released)('an upgrade of %s breaks nothing', (file) => {
  const breaks = upgradeBreaks(loadCrd(new URL(`released/${file}`, crds)), loadCrd(new URL(file, crds)));

  const found = [...new Set(breaks.map(({ at, what }) => `${at} ${what.replace(/: .*/s, '')}`))];
  expect(found.filter((one) => !(one in ACCEPTED))).toEqual([]);
  expect(
    Object.keys(ACCEPTED).filter((one) => !found.includes(one)),
    'accepted, but not so',
  ).toEqual([]);
});

describe('the check finds', () => {
  /** A CRD with one field of each sort. */
  const crd = () => ({
    ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', metadata: { name: 'a' } },
    spec: {
      ...{ group: 'g', scope: 'Namespaced' },
      names: { kind: 'K', plural: 'ks', shortNames: ['k'] } as Record<string, unknown>,
      versions: [{ name: 'v1', served: true, storage: true, subresources: { status: {} }, schema: schema() }],
    },
  });
  const schema = () => ({ openAPIV3Schema: { type: 'object', required: ['a'], properties: fields() } });
  const fields = (): Record<string, Record<string, unknown>> => ({
    a: { type: 'string', minLength: 1, maxLength: 5, pattern: '^a', enum: ['a', 'b'], default: 'a' },
    b: {
      type: 'array',
      maxItems: 5,
      'x-kubernetes-list-type': 'set',
      items: { type: 'integer', minimum: 1 },
    },
    c: { type: 'object', additionalProperties: { type: 'string', maxLength: 5 } },
  });
  type Crd = ReturnType<typeof crd>;
  const fieldsOf = (made: Crd) => made.spec.versions[0]!.schema.openAPIV3Schema.properties;
  const breaksAfter = (change: (made: Crd) => void): string[] => {
    const changed = crd();
    change(changed);
    const as = (made: Crd) => made as unknown as CustomResourceDefinition;
    return upgradeBreaks(as(crd()), as(changed)).map(({ at, what }) => `${at} ${what}`);
  };
  const edit = (field: string, keyword: string, value: unknown) => (made: Crd) => {
    fieldsOf(made)[field]![keyword] = value;
  };

  test('nothing where nothing changed, or where more is allowed', () => {
    expect(breaksAfter(() => undefined)).toEqual([]);
    expect(
      breaksAfter((made) => {
        const properties = fieldsOf(made);
        Object.assign(properties.a!, { minLength: 0, maxLength: 6, enum: ['a', 'b', 'c'] });
        delete properties.b!.maxItems;
        properties.d = { type: 'string', maxLength: 1, default: 'd' };
        made.spec.versions[0]!.schema.openAPIV3Schema.required = [];
        made.spec.versions.push({ ...made.spec.versions[0]!, name: 'v2', storage: false });
      }),
    ).toEqual([]);
  });

  test.each<[expected: string, change: (made: Crd) => void]>([
    ['spec group changed', (made) => (made.spec.group = 'h')],
    ['spec scope changed', (made) => (made.spec.scope = 'Cluster')],
    ['spec kind changed', (made) => (made.spec.names.kind = 'L')],
    ['spec plural changed', (made) => (made.spec.names.plural = 'ls')],
    ['spec short name removed', (made) => (made.spec.names.shortNames = [])],
    ['v1 version removed', (made) => (made.spec.versions[0]!.name = 'v2')],
    ['v1 version no longer served', (made) => (made.spec.versions[0]!.served = false)],
    ['v1 subresource status removed', (made) => Object.assign(made.spec.versions[0]!, { subresources: {} })],
    ['v1 c field removed', (made) => delete fieldsOf(made).c],
    ['v1 b became required', (made) => made.spec.versions[0]!.schema.openAPIV3Schema.required.push('b')],
    ['v1 a type changed', edit('a', 'type', 'integer')],
    ['v1 a format changed', edit('a', 'format', 'date')],
    ['v1 a pattern changed', edit('a', 'pattern', '^b')],
    ['v1 a default changed', edit('a', 'default', 'b')],
    ['v1 c default changed', edit('c', 'default', {})],
    ['v1 b x-kubernetes-list-type changed', edit('b', 'x-kubernetes-list-type', 'atomic')],
    ['v1 a minLength tightened', edit('a', 'minLength', 2)],
    ['v1 a maxLength tightened', edit('a', 'maxLength', 4)],
    ['v1 b minItems tightened', edit('b', 'minItems', 1)],
    ['v1 b maxItems tightened', edit('b', 'maxItems', 4)],
    ['v1 b[] minimum tightened', edit('b', 'items', { type: 'integer', minimum: 2 })],
    ['v1 b[] maximum tightened', edit('b', 'items', { type: 'integer', minimum: 1, maximum: 9 })],
    ['v1 c maxProperties tightened', edit('c', 'maxProperties', 9)],
    ['v1 c.* maxLength tightened', edit('c', 'additionalProperties', { type: 'string', maxLength: 4 })],
    ['v1 a enum value b removed', edit('a', 'enum', ['a'])],
    ['v1 b enum added', edit('b', 'enum', [[]])],
    ['v1 a rule added: true', edit('a', 'x-kubernetes-validations', [{ rule: 'true' }])],
  ])('%s', (expected, change) => {
    expect(breaksAfter(change)).toEqual([expected]);
  });
});
