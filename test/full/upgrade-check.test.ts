import { expect, inject, test } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import type { Kind } from '../../src/contract/kind.js';
import { sweep } from '../../src/testing/conformance.js';
import { formatReport } from '../../src/testing/report.js';
import type { ConformanceReport } from '../../src/testing/report.js';
import { defineKind } from '../../src/author/define-kind.js';
import { plantedSamples } from '../scenarios/planted/crd.js';
import { Sound, sound, soundProps } from '../scenarios/planted/sound.js';
import { loadKind } from '../support/bundle.js';

const sandbox = openSandbox(inject('sandbox'));
const { kind: before } = await loadKind('test/support/kinds/shop-1.config.mjs');
const { kind: present } = await loadKind('test/support/kinds/shop-2.config.mjs');

const samples = [{}, { text: 'bye', size: 1 }].map((spec) => ({
  ...{ apiVersion: present.type.apiVersion, kind: present.type.kind, metadata: { name: 'sample' }, spec },
}));

/** Doesn't hear that its updates are held. */
const deaf: Kind = {
  ...present,
  controllers: ({ upgrades: _, ...context }) => present.controllers(context),
};

class Bare extends Sound {
  constructor(...props: ConstructorParameters<typeof Sound>) {
    super(...props);
    for (const id of ['Settings', 'Parts']) this.node.tryRemoveChild(id);
  }
}

/** Makes no ConfigMaps any more, and doesn't say that it did. */
const bare = defineKind({ ...soundProps, construct: Bare, children: soundProps.children.slice(1) });

const swept = (kind: Kind): Promise<ConformanceReport> =>
  sweep(kind, samples, { sandbox, before, checks: ['upgrade'] });

test('a kind whose updates are held, and then as it alone would have them, is held', async () => {
  const report = await swept(present);
  expect(report.held, formatReport(report)).toBe(true);
});

test('one that rolls what was not released is found', async () => {
  const report = await swept(deaf);
  expect(report.checks[0]?.failures[0]?.what, formatReport(report)).toMatch(
    /^while its update is held, .* is /,
  );
});

test('objects of a type that the present version has forgotten are found', async () => {
  const report = await sweep(bare, plantedSamples, { sandbox, before: sound, checks: ['upgrade'] });
  expect(report.checks[0]?.failures[0]?.what, formatReport(report)).toMatch(
    /^Still so after .*: UpdatePending is absent, although in the present version ConfigMap <name>\S* is absent instead of \{/,
  );
});

test('of two versions that make the same, nothing is reported', async () => {
  const report = await sweep(sound, plantedSamples.slice(0, 1), {
    ...{ sandbox, before: sound, checks: ['upgrade'] },
  });
  expect(report.held, formatReport(report)).toBe(true);
});
