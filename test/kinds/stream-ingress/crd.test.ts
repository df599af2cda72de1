import { describe, expect, test } from 'vitest';
import { storedVersion } from '../../../src/contract/crd.js';
import type { StructuralSchema } from '../../../src/contract/crd.js';
import { streamIngress as kind } from '../../../src/kinds/stream-ingress/kind.js';
import { applyDefaults } from '../../../src/synth/defaults.js';
import { compileSchema, unknownRules } from '../../../src/synth/schema.js';
import { streamIngress } from './builders.js';
import { brokenRules, brokenChanges } from './broken-rules.js';

const schema = storedVersion(kind.crd).schema.openAPIV3Schema;
const validate = compileSchema(schema, { hasStatus: true });

function judge(spec: object, before?: object, name = 'web'): string[] {
  const of = (given: object): unknown => {
    const { apiVersion, kind: own, spec: base } = streamIngress();
    return applyDefaults({ apiVersion, kind: own, metadata: { name }, spec: { ...base, ...given } }, schema);
  };
  return validate(of(spec), before && of(before)).map(
    ({ path, message, remedy }) => `${path.join('.')}: ${message}${remedy ? `; ${remedy}` : ''}`,
  );
}

test('is served under the promised names', () => {
  expect(kind.type).toEqual({
    ...{ apiVersion: 'nginx-stream.jeffthecoder.xyz/v1beta1', kind: 'StreamIngress' },
    ...{ plural: 'streamingresses', namespaced: true },
  });
  expect(kind.name).toBe('streamingress');
  expect(storedVersion(kind.crd).subresources).toHaveProperty('status');
});

test('columns tell how it fares, what it opens and where it leads', () => {
  const { additionalPrinterColumns: columns } = storedVersion(kind.crd) as unknown as {
    additionalPrinterColumns: { name: string; priority?: number }[];
  };

  expect(columns.filter(({ priority }) => !priority).map(({ name }) => name)).toEqual([
    ...['Ready', 'Reason', 'Protocol', 'Listen', 'Upstream', 'Address', 'Age'],
  ]);
});

describe('schema', () => {
  const fields = Object.entries(schema.properties!).flatMap(([key, field]) => fieldsOf(field, key));

  test('describes every field, and bounds every text and list', () => {
    const missing = fields.filter(({ path, field }) => path !== 'metadata' && !field.description);
    const unbounded = fields.filter(
      ({ field }) =>
        (field.type === 'string' && !field.enum && field.maxLength === undefined) ||
        (field.type === 'array' && (field.maxItems === undefined || !field['x-kubernetes-list-type'])),
    );

    expect(missing.map(({ path }) => path)).toEqual([]);
    expect(unbounded.map(({ path }) => path)).toEqual([]);
  });

  test('has rules that are judged offline too, each with a message, and broken by a test', () => {
    const rules = [schema, ...fields.map(({ field }) => field)].flatMap(
      ({ 'x-kubernetes-validations': found = [] }) => found as { message?: string; reason?: string }[],
    );

    expect(unknownRules(schema)).toEqual([]);
    expect(rules).toHaveLength(6);
    const broken = [...brokenRules, ...brokenChanges].map(({ message }) => message);
    expect(rules.filter(({ message }) => !broken.some((part) => message?.includes(part)))).toEqual([]);
    expect(rules.filter(({ reason }) => reason === 'FieldValueDuplicate')).toEqual([]);
  });

  test('says what an object without a status has observed, so that nobody takes it for finished', () => {
    expect(schema.properties!.status!.default).toEqual({ observedGeneration: -1 });
  });

  test('fills in protocol and is_service, and nothing whose parent is left out', () => {
    const defaults = fields.filter(
      ({ path, field }) => path.startsWith('spec') && field.default !== undefined,
    );

    expect(Object.fromEntries(defaults.map(({ path, field }) => [path, field.default]))).toEqual({
      'spec.protocol': 'TCP',
      'spec.is_service': true,
    });
  });

  test('is small enough for kubectl apply', () => {
    expect(JSON.stringify(kind.crd).length).toBeLessThan(32 * 1024);
  });
});

describe('takes', () => {
  test.each([
    { listen: 1 },
    { listen: 65_535 },
    { upstream: { service: 'db', port: 'sql' } },
    { upstream: { service: '1db', port: 65_535, namespace: 'infra' } },
    { protocol: 'UDP', is_service: false, className: 'edge' },
    { proxyProtocol: { decode: true, encode: true } },
  ])('%j', (spec) => {
    expect(judge(spec)).toEqual([]);
  });

  test('what changes where it leads', () => {
    const before = { className: 'edge' };
    expect(judge({ ...before, upstream: { service: 'other', port: 1 }, is_service: false }, before)).toEqual(
      [],
    );
  });
});

describe('refuses', () => {
  test.each([
    ['spec.listen', { listen: 0 }],
    ['spec.listen', { listen: 65_536 }],
    ['spec.listen', { listen: undefined }],
    ['spec.protocol', { protocol: 'SCTP' }],
    ['spec.upstream', { upstream: undefined }],
    ['spec.upstream.service', { upstream: { port: 1 } }],
    ['spec.upstream.service', { upstream: { service: 'a/b', port: 1 } }],
    ['spec.upstream.namespace', { upstream: { service: 'a', port: 1, namespace: '../x' } }],
    ['spec.upstream.port', { upstream: { service: 'a' } }],
    ['spec.upstream.port', { upstream: { service: 'a', port: 0 } }],
    ['spec.upstream.port', { upstream: { service: 'a', port: 65_536 } }],
    ['spec.className', { className: 'a:b' }],
  ])('at %s: %j', (path, spec) => {
    expect(judge(spec).map((problem) => problem.split(':')[0])).toContain(path);
  });

  test.each(brokenRules)('$message: $spec', ({ spec, valid, name, path, message }) => {
    expect(judge(spec, undefined, name)).toEqual([expect.stringMatching(`^${path}: .*${message}`)]);
    expect(judge(valid)).toEqual([]);
  });

  test.each(brokenChanges)('$message: from $before to $after', ({ before, after, path, message }) => {
    expect(judge(after, before)).toEqual([expect.stringMatching(`^${path}: .*${message}`)]);
    expect(judge(before, before)).toEqual([]);
    expect(judge(after)).toEqual([]);
  });
});

interface Field {
  readonly path: string;
  readonly field: StructuralSchema;
}

function fieldsOf(field: StructuralSchema, path: string): Field[] {
  const inner = Object.entries(field.properties ?? {}).flatMap(([key, child]) =>
    fieldsOf(child, `${path}.${key}`),
  );
  return [{ path, field }, ...inner, ...(field.items ? fieldsOf(field.items, `${path}[]`) : [])];
}
