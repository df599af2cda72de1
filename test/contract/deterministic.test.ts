import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { withShiftedDateAndRandom, unsteadiness } from '../../src/render/renderer.js';
import type { AnyObject } from '../../src/contract/object.js';

const map = (data: unknown, kind = 'ConfigMap', name = 'web'): AnyObject => ({
  ...{ apiVersion: 'v1', kind, metadata: { name, namespace: 'shop' } },
  data,
});

/** What is told of objects that are made twice. */
function told(make: () => readonly AnyObject[]): string | undefined {
  const error = unsteadiness('Widget shop/web', make(), () => withShiftedDateAndRandom(make));
  if (error) expect([error.reason, error.retry]).toEqual(['NotDeterministic', 'onChange']);
  return error?.message;
}

let count = 0;
const EPOCH = new Date(0);
class Day extends Date {
  twice(): number {
    return this.getTime() * 2;
  }
}

it.each<[what: string, make: () => unknown]>([
  ['text', () => ({ a: 'b', list: [1, { c: true }], nothing: null })],
  [
    'a time that is given',
    () => ({ at: new Date(0).toISOString(), later: new Date('2026-01-02').getFullYear() }),
  ],
  ['whether something is a date', () => ({ is: String(new Date(0) instanceof Date) })],
  ['whether a date from before is one', () => [EPOCH instanceof Date, EPOCH.constructor === Date]],
  ['whether a cloned date is one', () => [structuredClone(new Date(1)) instanceof Date]],
  ['what the clock is called', () => [Date.name, Date.length, Date.UTC(2026), Date.parse('2026-01-02')]],
  ["a date of a class of one's own", () => [new Day(5).twice(), new Day(5) instanceof Date]],
])('says nothing of what is the same: %s', (_, make) => {
  expect(told(() => [map(make())])).toBeUndefined();
});

it.each<[what: string, make: () => unknown, path: string]>([
  ['the time', () => ({ at: new Date().getFullYear() }), '.data.at'],
  ['the time in milliseconds', () => [Math.floor(Date.now() / 1e10)], '.data[0]'],
  ['the time as text', () => [Date()], '.data[0]'],
  ['the time of a class that is made there', () => [new (class extends Date {})().getFullYear()], '.data[0]'],
  ['chance', () => ({ 'a.b/c': Math.random() }), '.data["a.b/c"]'],
  ['a UUID', () => ({ a: { id: randomUUID() } }), '.data.a.id'],
  ['a counter', () => ({ a: [{ b: (count += 1) }] }), '.data.a[0].b'],
  ['a field that comes', () => ((count += 1) % 2 ? { a: 1 } : { a: 1, b: 2 }), '.data.b'],
  ['a field that is another type', () => ({ a: (count += 1) % 2 ? [] : {} }), '.data.a'],
])('tells object, path and values of what differs by %s', (_, make, path) => {
  count = 0;
  const message = told(() => [map('same', 'ConfigMap', 'other'), map(make())]);
  expect(message).toContain(`Widget shop/web renders ConfigMap shop/web with `);
  expect(message).toMatch(/ at (\S+), and the next time with /);
  expect(/ at (\S+), and/.exec(message ?? '')?.[1]).toBe(path);
  expect(message).toContain('A construct has to depend on its props alone: take clocks, chance and counters');
});

it('keeps to itself what is in a Secret, and says what to do instead', () => {
  const message = told(() => [map({ password: randomUUID() }, 'Secret')]);
  expect(message).toContain('Secret shop/web with a value that is not shown here at .data.password');
  expect(message).not.toMatch(/[0-9a-f]{8}-/);
  expect(message).toContain('let the spec name a Secret that others make');
});

it('tells of an object that has another name each time, that comes, and that throws', () => {
  count = 0;
  expect(told(() => [map({}, 'Job', `job-${(count += 1)}`)])).toContain(
    "renders Job shop/job-1, and the next time doesn't",
  );
  count = 0;
  expect(told(() => [map({}), map({}, 'Job')].slice(0, (count += 1)))).toContain(
    'renders Job shop/web only the second time',
  );
  const throwing = (): never => {
    throw new Error('no more');
  };
  expect(unsteadiness('Widget shop/web', [], throwing)?.message).toContain("the next time can't: no more");
});

it('leaves the clock as it was, also where it is thrown', () => {
  const { Date: before } = globalThis;
  const { random } = Math;
  const throwing = (): never => {
    throw new Error('no');
  };
  expect(() => withShiftedDateAndRandom(throwing)).toThrow('no');
  expect([globalThis.Date, Math.random]).toEqual([before, random]);
  expect(new Date().constructor).toBe(before);
});
