import { expect, test } from 'vitest';
import { Call, code, Noted, onLines, source } from '../../../src/cli/init/source.js';

test('what fits is on one line, and what is nested deeply is not', () => {
  expect(source({ name: 'http', port: code('port'), no: undefined })).toBe("{ name: 'http', port }");
  expect(source({ a: { b: { c: 1 } } })).toBe('{\n  a: { b: { c: 1 } },\n}');
  expect(source({ list: ['x'.repeat(60), 'y'.repeat(60)] })).toBe(
    `{\n  list: [\n    '${'x'.repeat(60)}',\n    '${'y'.repeat(60)}',\n  ],\n}`,
  );
  expect(
    source([
      { a: 1, b: 2 },
      { a: 3, b: 4 },
    ]),
  ).toBe('[\n  { a: 1, b: 2 },\n  { a: 3, b: 4 },\n]');
  expect(source({})).toBe('{}');
});

test('keys and texts are quoted where they have to be', () => {
  expect(source({ 'x-y': "it's", z: 'a\\.b\n', '...rest': code('...rest') })).toBe(
    `{ 'x-y': "it's", z: 'a\\\\.b\\n', ...rest }`,
  );
});

test('a note stands above its member', () => {
  expect(onLines({ a: new Noted('Why.', true) })).toBe('{\n  // Why.\n  a: true,\n}');
});

test('a call ends with its object', () => {
  expect(source({ spec: new Call('pod(name, ', { a: 1 }) })).toBe('{ spec: pod(name, { a: 1 }) }');
});
