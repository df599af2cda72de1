import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Change } from '../../../src/contract/change.js';
import { OperatorError } from '../../../src/contract/error.js';
import { refOf } from '../../../src/contract/object.js';
import { entryOf, sharedSteps, sharedWrites } from '../../../src/kinds/stream-ingress/nginx.js';
import type { Entry } from '../../../src/kinds/stream-ingress/nginx.js';
import { heldBy, openPort, OURS, shared, streamIngress, target } from './builders.js';

type EntryPort = Entry['port'];

const cr = (listen: number, protocol: 'TCP' | 'UDP' = 'TCP') =>
  streamIngress({ name: `web-${listen}`, listen, protocol });

const mapped = (...listens: number[]) =>
  Object.fromEntries(listens.map((listen) => [listen, { value: 'shop/db:5432', ...OURS }]));

test.each([
  [{}, 'shop/db:5432'],
  [{ proxyProtocol: { decode: true } }, 'shop/db:5432:PROXY'],
  [{ proxyProtocol: { encode: true } }, 'shop/db:5432::PROXY'],
  [{ proxyProtocol: { decode: true, encode: true } }, 'shop/db:5432:PROXY:PROXY'],
  [{ proxyProtocol: {} }, 'shop/db:5432'],
  [{ proxyProtocol: { decode: false, encode: false } }, 'shop/db:5432'],
  [{ upstream: { port: 'sql', namespace: 'infra' } }, 'infra/db:sql'],
  [{ protocol: 'UDP' as const, proxyProtocol: { decode: true } }, 'shop/db:5432'],
])('the value for %j is %s', (given, value) => {
  expect(entryOf(streamIngress(given)).value).toBe(value);
});

const ports = fc.uniqueArray(fc.integer({ min: 9000, max: 9006 }), { maxLength: 6 });

/** The shared objects as they are after each write: ours are replaced as a whole, foreign ones stay. */
test('property: at no moment is a port open behind which there is no entry, and in the end it is what is wanted', () => {
  fc.assert(
    fc.property(ports, ports, ports, (wanted, present, foreign) => {
      const strange = foreign.filter((port) => !present.includes(port));
      const free = wanted.filter((port) => !strange.includes(port));
      const held = Object.fromEntries(strange.map((port) => [port, { value: 'x/y:1', ...heldBy('helm') }]));
      const state = {
        tcp: { ...mapped(...present), ...held },
        open: [
          ...present.map((port) => openPort(port)),
          ...strange.map((port) => openPort(port, 'TCP', heldBy('helm'))),
        ],
      };
      let [entries, open] = [present, present];
      for (const object of sharedWrites(
        target,
        free.map((port) => entryOf(cr(port))),
        shared(state),
      )) {
        if (object.kind === 'ConfigMap') entries = Object.keys(object.data ?? {}).map(Number);
        else
          open = ((object.spec as { ports?: EntryPort[] } | undefined)?.ports ?? []).map(({ port }) => port);
        expect(open.filter((port) => !entries.includes(port))).toEqual([]);
        expect([...open, ...entries].filter((port) => strange.includes(port))).toEqual([]);
      }
      expect([[...entries].sort(), [...open].sort()]).toEqual([[...free].sort(), [...free].sort()]);
    }),
    { numRuns: 2000 },
  );
});

const outcomes = fc.array(fc.boolean(), { minLength: 4, maxLength: 4 });

test('property: whatever is refused, what can be closed is closed, and nothing is opened without its entry', () => {
  fc.assert(
    fc.property(ports, ports, outcomes, (wanted, present, refused) => {
      const state = shared({ tcp: mapped(...present), open: present.map((port) => openPort(port)) });
      const steps = sharedSteps(
        target,
        wanted.map((port) => entryOf(cr(port))),
        state,
      );
      let [entries, open] = [present, present];
      const changes: Change[] = [];
      for (const [index, { object, revise }] of steps.entries()) {
        const intent = revise ? revise(changes) : object;
        const failed = refused[index] === true;
        changes.push({ ref: refOf(object), ...(failed ? FAILED : { action: 'configured' }) });
        if (failed || !intent) continue;
        if (intent.kind === 'ConfigMap') entries = Object.keys(intent.data ?? {}).map(Number);
        else
          open = ((intent.spec as { ports?: EntryPort[] } | undefined)?.ports ?? []).map(({ port }) => port);
      }
      const went = (kind: string): boolean =>
        changes.some(({ ref, action }) => ref.kind === kind && action !== 'failed');
      const extra = (of: readonly number[]) => of.filter((port) => !wanted.includes(port));
      if (went('ConfigMap')) expect(extra(entries)).toEqual([]);
      if (went('Service')) expect(extra(open)).toEqual([]);
      const opened = open.filter((port) => !present.includes(port));
      expect(opened.filter((port) => !entries.includes(port))).toEqual([]);
    }),
    { numRuns: 2000 },
  );
});

const FAILED = {
  action: 'failed',
  error: new OperatorError({ reason: 'Invalid', message: 'no' }),
} as const;
