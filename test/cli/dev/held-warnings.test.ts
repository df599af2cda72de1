import { beforeEach, expect, test } from 'vitest';
import { HeldWarnings } from '../../../src/cli/dev/session.js';
import type { ResourceStatus, StatusDocument } from '../../../src/cli/status/document.js';
import { VirtualClock } from '../../engine/support/virtual-clock.js';

const failure = { of: 'Note default/hello', cause: 'the text is boom' };

let clock: VirtualClock;
let told: string[];
let held: HeldWarnings;

beforeEach(() => {
  clock = new VirtualClock();
  told = [];
  held = new HeldWarnings({ clock, tell: (text) => void told.push(text) });
});

function says(name: string, message: string): StatusDocument {
  const verdict = { word: 'Stalled', reason: 'RenderFailed', message, current: true } as const;
  const resource: ResourceStatus = {
    ...{ apiVersion: 'example.com/v1', kind: 'Note', namespace: 'default', name, uid: `uid-${name}` },
    ...{ verdict, facts: [], events: [], notes: [], children: [] },
  };
  return { notes: [], resources: [resource] };
}

const status = says('hello', "Note default/hello can't be rendered: the text is boom (at kind.ts:8:37)");

test('a failure that the status tells within two seconds is not told by the warning, also where it passes soon', () => {
  held.warned('failed', failure);
  clock.jump(1_500);
  held.document(status);
  held.document(says('hello', 'All is there'));
  clock.jump(10_000);

  expect(told).toEqual([]);
});

test('nor is one of a controller that has ended', () => {
  held.warned('failed', failure);
  held.clear();
  clock.jump(10_000);

  expect(told).toEqual([]);
});

test('nor is one that the status tells already, as after a restart', () => {
  held.document(status);
  held.warned('failed', failure);
  clock.jump(10_000);

  expect(told).toEqual([]);
});

test('what no status tells, or that of another custom resource alone, is told after two seconds, and once', () => {
  held.document(says('hello', 'All is there'));
  held.warned('failed', failure);
  held.document(says('other', 'the text is boom'));
  clock.jump(1_999);
  expect(told).toEqual([]);
  clock.jump(1);
  held.document(status);
  clock.jump(10_000);

  expect(told).toEqual(['failed']);
});
