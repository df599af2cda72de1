import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { expect, test } from 'vitest';
import { defineKind } from '../../src/author/define-kind.js';
import type { CustomResourceProps, Kind } from '../../src/contract/kind.js';
import { listKeys, rendering } from '../../src/testing/offline-checks.js';
import { SAMPLE_SITE, testedKind } from '../../src/testing/tested-kind.js';
import type { TestedKind } from '../../src/testing/tested-kind.js';
import type { Spec } from '../../src/testing/walk.js';
import type { AnyObject } from '../../src/contract/object.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import { streamIngress } from '../../src/kinds/stream-ingress/kind.js';
import * as faults from '../scenarios/planted/faults.js';
import { plantedCrd, plantedSamples } from '../scenarios/planted/crd.js';
import type { PlantedSpec } from '../scenarios/planted/crd.js';
import { naming, namingSamples, sound } from '../scenarios/planted/sound.js';
import { jobWatcherSamples } from '../scenarios/support/job-watcher-swept.js';
import { streamIngressSamples } from '../scenarios/support/stream-ingress-swept.js';

const samples = plantedSamples.map(({ spec }) => ({ spec: spec as Spec }));

const tested = (kind: Kind, of = samples): TestedKind =>
  testedKind(kind, of as unknown as TestedKind['samples'], undefined);

const specsOf = (all: readonly AnyObject[]): { readonly spec: Spec }[] =>
  all.map(({ spec }) => ({ spec: spec as Spec }));

test.each<[fault: string, kind: Kind, message: RegExp]>([
  ['a timestamp in the render', faults.timestamp, /at \.data\.rendered, and the next time with/],
  ['a field remembered from an earlier spec', faults.remembered, /after another spec.*data\.color is/],
  ['a name that collides', faults.colliding, /ConfigMap parts is made for two/],
])('%s is found without a cluster', (_fault, kind, message) => {
  const { failures } = rendering(tested(kind));

  expect(failures[0]?.what).toMatch(message);
  expect(failures[0]?.sequence).not.toEqual([]);
});

test.each([rendering, listKeys])('of a sound kind nothing is reported', (check) => {
  expect(check(tested(sound)).failures).toEqual([]);
});

test('a hash of a text that has the name in it is no difference', () => {
  class Hashing extends Construct {
    constructor(scope: Construct, id: string, { metadata: { name } }: CustomResourceProps<PlantedSpec>) {
      super(scope, id);
      const peers = `${name}-0.${name}`;
      const data = { peers, hash: createHash('sha256').update(peers).digest('hex') };
      const metadata = { name: `${name}-${data.hash.slice(0, 16)}` };
      new ApiObject(this, 'Map', { apiVersion: 'v1', kind: 'ConfigMap', metadata, data });
    }
  }
  const children = [{ apiVersion: 'v1', kind: 'ConfigMap' }];
  const kind = defineKind({ crd: plantedCrd(), construct: Hashing, children });

  expect(rendering(tested(kind)).failures).toEqual([]);
});

test('an object that a sample names after its custom resource is no collision', () => {
  expect(rendering(tested(naming, specsOf(namingSamples(SAMPLE_SITE)))).failures).toEqual([]);
});

test('a name in the compressed text of a Secret is no difference, whatever its size', () => {
  class Compressing extends Construct {
    constructor(scope: Construct, id: string, { metadata: { name } }: CustomResourceProps<PlantedSpec>) {
      super(scope, id);
      // Longer, also as base64, where the name begins otherwise.
      const data = { zip: gzipSync(`fir- fir- ${name}`).toString('base64') };
      new ApiObject(this, 'Secret', { apiVersion: 'v1', kind: 'Secret', metadata: { name }, data });
    }
  }
  const children = [{ apiVersion: 'v1', kind: 'Secret' }];
  const kind = defineKind({ crd: plantedCrd(), construct: Compressing, children });

  expect(rendering(tested(kind)).failures).toEqual([]);
});

test('a kind that renders nothing is left out, and that is said', () => {
  expect(rendering(tested(jobWatcher, specsOf(jobWatcherSamples)))).toMatchObject({
    ...{ failures: [], notApplicable: 'it renders no objects' },
  });
});

test('what is rendered together is held against another day too', () => {
  const { rendering: sound_ } = streamIngress;
  if (!('together' in sound_)) throw new Error('It is rendered one by one');
  const today = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'today' } };
  const dated: Kind = {
    ...streamIngress,
    rendering: {
      together: (...given) => {
        const { manifests } = sound_.together(...given);
        return { manifests: [...manifests, { objects: [{ ...today, data: { at: Date.now() } }] }] };
      },
    },
  };
  const all = specsOf(streamIngressSamples);

  expect(rendering(tested(streamIngress, all))).toEqual({ tried: '4 samples', failures: [] });
  expect(rendering(tested(dated, all)).failures[0]?.what).toMatch(/on another day.*data\.at is/);
});
