import { expect, test } from 'vitest';
import { storedVersion } from '../../../src/contract/crd.js';
import { streamIngress as kind } from '../../../src/kinds/stream-ingress/kind.js';
import { applyDefaults } from '../../../src/validate/defaults.js';
import { compileSchema } from '../../../src/validate/schema.js';
import { brokenChanges } from './broken-rules.js';
import { streamIngress } from './builders.js';

const schema = storedVersion(kind.crd).schema.openAPIV3Schema;
const validate = compileSchema(schema, { hasStatus: true });

function judge(spec: object, before?: object): string[] {
  const of = (given: object): unknown => {
    const { apiVersion, kind: own, spec: base } = streamIngress();
    const metadata = { name: 'web' };
    return applyDefaults({ apiVersion, kind: own, metadata, spec: { ...base, ...given } }, schema);
  };
  return validate(of(spec), before && of(before)).map(
    ({ path, message, remedy }) => `${path.join('.')}: ${message}${remedy ? `; ${remedy}` : ''}`,
  );
}

test('the destination may change', () => {
  const before = { className: 'edge' };
  const after = { ...before, upstream: { service: 'other', port: 1 }, is_service: false };
  expect(judge(after, before)).toEqual([]);
});

test.each(brokenChanges)('$message: from $before to $after', ({ before, after, path, message }) => {
  expect(judge(after, before)).toEqual([expect.stringMatching(`^${path}: .*${message}`)]);
  expect(judge(before, before)).toEqual([]);
  expect(judge(after)).toEqual([]);
});
