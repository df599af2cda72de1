import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { repoFolder } from '../../sandbox/paths.js';
import { defineKind } from '../../src/author/define-kind.js';
import type { Kind, StandaloneController } from '../../src/contract/kind.js';
import type { AnyObject } from '../../src/contract/object.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import { streamIngress } from '../../src/kinds/stream-ingress/kind.js';
import { sweep, sweepCommand } from '../../src/testing/conformance.js';
import type { ConformanceOptions } from '../../src/testing/conformance.js';
import { readSamples } from '../../src/testing/render.js';
import type { CheckName } from '../../src/testing/report.js';
import { plantedSamples } from '../scenarios/planted/crd.js';
import { clinging } from '../scenarios/planted/faults.js';
import { sound, soundProps } from '../scenarios/planted/sound.js';
import { jobWatcherSamples } from '../scenarios/support/job-watcher-swept.js';
import { streamIngressSamples } from '../scenarios/support/stream-ingress-swept.js';
import { folderWith } from '../synth/fixtures.js';

const clusterWide: Kind = {
  ...{ ...sound, type: { ...sound.type, namespaced: false } },
  rendering: { together: () => ({ manifests: [] }) },
};

const domain = { type: 'string' } as const;
const configured = defineKind({
  ...soundProps,
  settingsSchema: { type: 'object', required: ['domain'], properties: { domain } },
});

const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: 'any' } };

test.each<[what: string, Kind | StandaloneController, readonly AnyObject[], ConformanceOptions, RegExp]>([
  ['no samples', sound, [], {}, /give at least one Planted/],
  ['samples of another kind', sound, jobWatcherSamples, {}, /a sample is a JobWatcher of batch/],
  [
    'a cluster-scoped kind on the core contract',
    clusterWide,
    plantedSamples,
    {},
    /Planted is cluster-scoped/,
  ],
  [
    'a sample that the API server would refuse',
    sound,
    [plantedSamples[0]!, { ...plantedSamples[1]!, spec: { image: 'three:3', colour: 'red' } }],
    {},
    /sample 2: spec\.colour: .*\nsample 2: spec\.image: "three:3" .*one:1/,
  ],
  [
    'a former version of another kind',
    sound,
    plantedSamples,
    { before: jobWatcher },
    /before is the kind JobWatcher\S*; give a former version of Planted/,
  ],
  ['an object of others without a spec', clinging, [lease], {}, /with a namespace and a spec can be swept/],
  [
    'no checks, of an object of others',
    clinging,
    [{ ...lease, spec: {} }],
    { checks: [] },
    /^sweep: checks is empty/,
  ],
  ['no checks', sound, plantedSamples, { checks: [] }, /checks is empty; .* all: list keys, rendering/],
  [
    'an unknown check',
    sound,
    plantedSamples,
    { checks: ['walks' as CheckName] },
    /checks: there is no "walks"; did you mean walk\?/,
  ],
  [
    'a field to leave alone that is none',
    sound,
    plantedSamples,
    { notWalked: ['parts.[].value', 'part'] },
    /notWalked: there is no "part"; did you mean parts\?/,
  ],
  [
    'a kind without settings that it needs',
    configured,
    plantedSamples,
    {},
    /surroundings: settings\.domain: is missing; add it$/,
  ],
  [
    'settings with the name of the kind around them',
    configured,
    plantedSamples,
    { surroundings: () => ({ settings: { planted: { domain: 'example.com' } } }) },
    /surroundings: settings\.domain: is missing; add it\n.*settings\.planted: unknown field/,
  ],
  [
    'a kind that deletes, and nothing to delete',
    jobWatcher,
    jobWatcherSamples,
    {},
    /deletes .* the kind Job;/,
  ],
  [
    'a shared object that all trials would have in common',
    streamIngress,
    streamIngressSamples,
    { surroundings: () => ({ flags: { '--ingress-namespace': 'common' } }) },
    /shares a Service in the namespace common, .* lead it to site\.elsewhere/,
  ],
])('%s: a sweep is refused before anything is started', async (_what, kind, samples, options, message) => {
  await expect(sweep(kind, samples, options)).rejects.toMatchObject({
    ...{ reason: 'InvalidInput', message: expect.stringMatching(message) as string },
  });
});

test('the page on testing has the checks in the order in which they run', async () => {
  const [, table = ''] = /^\| check .*\n\|.*\n((?:\|.*\n)+)/m.exec(
    readFileSync(join(repoFolder(), 'docs/testing.md'), 'utf8'),
  )!;
  const names = [...table.matchAll(/^\| `(.*?)`/gm)].map(([, name]) => name);

  await expect(sweep(sound, plantedSamples, { checks: [] })).rejects.toMatchObject({
    message: expect.stringMatching(new RegExp(`: ${names.join(', ')}$`)) as string,
  });
});

test.each<[what: string, args: string[], sample: string, message: string]>([
  ['an option that there is not', ['--sed=1'], '{ image: "one:1" }', "Unknown option '--sed'"],
  ['a seed that is no number', ['--seed=x'], '{ image: "one:1" }', '--seed: x is no number'],
  [
    'a bad sample',
    [],
    '{ image: 3 }',
    'sample.yaml: document 1, line 4: spec.image: 3 is a number, not a string',
  ],
])('as a command, %s ends in a sentence and exit code 2', async (_, args, spec, message) => {
  const { apiVersion, kind } = sound.type;
  const text = `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata: { name: one }\nspec: ${spec}\n`;
  const folder = folderWith({ 'sample.yaml': text });
  vi.spyOn(process, 'argv', 'get').mockReturnValue(['node', 'sweep.ts', ...args]);
  const written = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  onTestFinished(() => {
    vi.restoreAllMocks();
    process.exitCode = undefined;
  });
  await sweepCommand(sound, () => readSamples(sound, join(folder, 'sample.yaml')));
  expect(written.mock.calls.join('')).toContain(message);
  expect(process.exitCode).toBe(2);
});
