import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { storedVersion } from '../../../src/contract/crd.js';
import { jobWatcher } from '../../../src/kinds/job-watcher/kind.js';
import { readWatcher } from '../../../src/kinds/job-watcher/watcher.js';
import type { LiveWatcher } from '../../../src/kinds/job-watcher/spec.js';
import { synth } from '../../../src/cli/synth/synth.js';

const folder = new URL('../../../examples/jobwatcher/', import.meta.url);
const files = readdirSync(folder)
  .filter((file) => file.endsWith('.yaml'))
  .sort();
const text = (file: string): string => readFileSync(new URL(file, folder), 'utf8');
const example = (file: string): LiveWatcher => parse(text(file)) as LiveWatcher;

test.each(files)('examples/jobwatcher/%s is valid, and makes nothing', async (file) => {
  const { metadata, ...cr } = example(file);
  const settings = { adminNamespaces: ['reconstruct-system'], protectedNamespaces: [], deletesPerSecond: 10 };

  expect(`${metadata.name}.yaml`).toBe(file);
  const stdin = (): Promise<Buffer> => Promise.resolve(Buffer.from(text(file)));
  expect(await synth({ kinds: [jobWatcher], sources: ['-'], stdin })).toEqual([]);
  const placed = { ...cr, metadata: { namespace: 'default', ...metadata } };
  expect(readWatcher(placed, settings).isScopeLimited).toBe(false);
});

test('every field of the spec has an example', () => {
  const { properties } = storedVersion(jobWatcher.crd).schema.openAPIV3Schema.properties!.spec!;
  const used = new Set(files.flatMap((file) => Object.keys(example(file).spec)));

  expect(Object.keys(properties!).filter((field) => !used.has(field))).toEqual([]);
});
