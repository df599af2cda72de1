import { expect, test } from 'vitest';
import { byChildren } from '../../../src/cli/status/collect.js';
import type { ChildStatus, ResourceStatus } from '../../../src/cli/status/document.js';
import { noneOf } from '../../../src/cli/status/none.js';
import { textOf } from '../../../src/cli/status/text.js';
import { appService } from '../../../src/kinds/app-service/kind.js';
import { jobWatcher } from '../../../src/kinds/job-watcher/kind.js';
import { streamIngress } from '../../../src/kinds/stream-ingress/kind.js';

const place = { kind: appService, namespace: 'shop' };
const now = new Date('2026-01-01T01:00:00Z');

function resource(
  phases: readonly ChildStatus['phase'][],
  word: 'Unknown' | 'Ready' = 'Unknown',
): ResourceStatus {
  const children = phases.map((phase, index): ChildStatus => ({
    ...{ apiVersion: 'v1', kind: 'Service', namespace: 'shop', name: `c${index}`, uid: `${index}` },
    ...{ phase, message: 'm', pods: [] },
  }));
  const verdict = { word, reason: 'NotSeen', message: 'No controller', current: false };
  const { apiVersion } = appService.type;
  return {
    ...{ apiVersion, kind: 'AppService', namespace: 'shop', name: 'web', uid: 'web', verdict, children },
    ...{ facts: [], events: [], notes: [] },
  };
}

test.each([
  [['ready', 'ready'], 'Ready'],
  [['ready', 'progressing'], 'Reconciling'],
  [['ready', 'failing'], 'Reconciling'],
  [['progressing', 'stalled'], 'Stalled'],
] as const)('where nobody looks after it, children that are %j make it %s', (phases, word) => {
  const judged = byChildren(resource(phases), [place]);
  expect(judged.verdict).toMatchObject({ word, byChildren: true });
  const text = textOf({ notes: [], resources: [judged] }, { now, paint: (_, told) => told });
  expect(text).toMatch(new RegExp(`^AppService shop/web +${word}, by its children$`, 'm'));
  expect(text).toContain('Nobody puts drift right: no operator looks after it');
});

test.each([
  ['without children', resource([]), [place]],
  ['of which a controller has spoken', resource(['ready'], 'Ready'), [place]],
  ['that an operator looks after', resource(['ready']), []],
  ['elsewhere', resource(['ready']), [{ ...place, namespace: 'team' }]],
  ['of another kind', resource(['ready']), [{ ...place, kind: jobWatcher }]],
])('one %s stays as it is', (_, given, unattended) => {
  expect(byChildren(given, unattended)).toBe(given);
});

test.each([
  [undefined, 'shop', 'There is no AppService, StreamIngress nor JobWatcher in shop'],
  [['JobWatcher'], 'shop', "There is no AppService nor StreamIngress in shop; JobWatcher isn't installed"],
  [
    ['StreamIngress', 'JobWatcher'],
    undefined,
    "There is no AppService anywhere; StreamIngress and JobWatcher aren't installed",
  ],
])('where %j are not installed, none in %s is told in a sentence', (notInstalled, where, sentence) => {
  const kinds = [appService, streamIngress, jobWatcher];
  expect(noneOf({ ...(notInstalled && { notInstalled }) }, kinds, where)).toBe(sentence);
});
