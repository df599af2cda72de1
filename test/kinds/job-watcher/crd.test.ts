import { describe, expect, test } from 'vitest';
import { storedVersion } from '../../../src/contract/crd.js';
import type { StructuralSchema } from '../../../src/contract/crd.js';
import { jobWatcher } from '../../../src/kinds/job-watcher/kind.js';
import { brokenRules, brokenStatus } from './broken-rules.js';

const { crd } = jobWatcher;
const version = storedVersion(crd);
const schema = version.schema.openAPIV3Schema;

interface Rule {
  readonly rule: string;
  readonly message?: string;
  readonly reason?: string;
}

interface Field {
  readonly path: string;
  readonly schema: StructuralSchema;
}

function fieldsOf(schema: StructuralSchema, path: string): Field[] {
  const inner: [StructuralSchema, string][] = Object.entries(schema.properties ?? {}).map(([key, child]) => [
    child,
    `${path}.${key}`,
  ]);
  if (schema.items) inner.push([schema.items, `${path}[]`]);
  if (typeof schema.additionalProperties === 'object') inner.push([schema.additionalProperties, `${path}.*`]);
  return [{ path, schema }, ...inner.flatMap(([child, childPath]) => fieldsOf(child, childPath))];
}

const fields = Object.entries(schema.properties!).flatMap(([key, field]) => fieldsOf(field, key));

test('is served under the promised names', () => {
  expect(crd.metadata.name).toBe('jobwatchers.batch.my.github.com');
  expect(jobWatcher.type).toEqual({
    ...{ apiVersion: 'batch.my.github.com/v1', kind: 'JobWatcher', plural: 'jobwatchers', namespaced: true },
  });
  expect(version.subresources).toEqual({ status: {} });
});

describe('schema', () => {
  test('describes every field', () => {
    // The API server allows no description on metadata.
    const missing = fields.filter(({ path, schema }) => path !== 'metadata' && !schema.description);

    expect(missing.map(({ path }) => path)).toEqual([]);
  });

  test('tells of every list how it is merged, and bounds every text, list and map', () => {
    const unmerged = fields.filter(
      ({ schema }) => schema.type === 'array' && !schema['x-kubernetes-list-type'],
    );
    const lacks = (type: string, keyword: string) =>
      fields.filter(({ schema }) => schema.type === type && !schema.enum && schema[keyword] === undefined);
    const maps = fields.filter(({ schema }) => schema.additionalProperties && !schema.maxProperties);
    const unbounded = [...lacks('string', 'maxLength'), ...lacks('array', 'maxItems'), ...maps];

    expect([...unmerged, ...unbounded].map(({ path }) => path)).toEqual([]);
  });

  test('gives every rule a message, each of which a test breaks', () => {
    const rules = fields.flatMap(
      ({ schema }) => (schema['x-kubernetes-validations'] ?? []) as readonly Rule[],
    );
    const messages = [...brokenRules.flatMap((broken) => broken.messages), brokenStatus.message];
    const broken = new Set(messages.filter((part) => part.length > 9));

    expect(rules.length).toBeGreaterThan(7);
    const unbroken = rules.filter(({ message = '' }) => ![...broken].some((part) => message.includes(part)));
    expect(unbroken).toEqual([]);
    // The API server leaves the message out where the reason is FieldValueDuplicate.
    expect(rules.filter(({ reason }) => reason === 'FieldValueDuplicate')).toEqual([]);
  });

  test('has no defaults but a status that nobody takes for a finished one', () => {
    const defaults = fields.filter(({ schema }) => schema.default !== undefined);

    expect(Object.fromEntries(defaults.map(({ path, schema }) => [path, schema.default]))).toEqual({
      status: { observedGeneration: -1 },
    });
  });
});

test('is small enough for kubectl apply', () => {
  expect(JSON.stringify(crd).length).toBeLessThan(64 * 1024);
});
