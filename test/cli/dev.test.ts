import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createLogUpdate } from 'log-update';
import { beforeEach, describe, expect, test } from 'vitest';
import { changesBetween, followKinds } from '../../src/cli/dev/follower.js';
import { readLogLine, sampleSources } from '../../src/cli/dev/load.js';
import { IGNORED } from '../../src/cli/dev/session.js';
import { loadStand } from '../../src/cli/dev/stand.js';
import type { StandModule } from '../../src/cli/dev/stand.js';
import { terminalView } from '../../src/cli/dev/view.js';
import type { KindData } from '../../src/cli/operators.js';
import type { EventStatus, ResourceStatus, StatusDocument, Verdict } from '../../src/cli/tree/model.js';
import type { AnyObject } from '../../src/contract/object.js';
import { Api } from '../../src/client/api.js';
import * as devStand from '../../src/testing/dev-stand.js';
import { anObject, CONFIG_MAP, configMap, failure, ownedBy, WIDGET } from '../engine/support/builders.js';
import { VirtualClock } from '../engine/support/virtual-clock.js';
import { folderWith } from '../synth/fixtures.js';
import { StoredServer } from './support/stored-server.js';

const now = new Date('2026-01-01T00:01:00Z');

test('the testing kit exports what dev expects, by name and type', async () => {
  const expected: StandModule = devStand;
  expect(Object.keys(await loadStand()).sort()).toEqual(Object.keys(expected).sort());
});

describe('loading', () => {
  test('samples are samples/*.yaml, else sample.yaml, else none; or files, folders and patterns that are named', () => {
    const folder = folderWith({ 'sample.yaml': '', 'crd.yaml': '' });
    expect(sampleSources([], folder)).toEqual([join(folder, 'sample.yaml')]);
    mkdirSync(join(folder, 'samples'));
    for (const name of ['b.yaml', 'a.yml', 'notes.md']) writeFileSync(join(folder, 'samples', name), '');
    expect(sampleSources([], folder)).toEqual(
      ['a.yml', 'b.yaml'].map((name) => join(folder, 'samples', name)),
    );
    expect(sampleSources([], join(folder, 'samples'))).toEqual([]);
    const named = ['crd.yaml', 'samples', 's*.yaml', 'nowhere.yaml'].map((name) => join(folder, name));
    expect(sampleSources(named, folder)).toEqual(
      ['crd.yaml', 'samples', 'sample.yaml', 'nowhere.yaml'].map((name) => join(folder, name)),
    );
  });

  test('saves of tools, backups and logs are ignored', () => {
    const ignored = ['node_modules', 'dist', '.git', 'kind.ts~', '.kind.ts.swp', '4913', 'dev.log'];
    const counting = ['kind.ts', 'script.sh', 'nginx.conf', 'samples', 'v1.yaml'];
    expect([...ignored, ...counting].filter((name) => IGNORED.test(name))).toEqual(ignored);
  });
});

test.each([
  ['what the author prints', 'hello', ['hello', 'news']],
  ['the start of a controller', { msg: 'controller started', controller: 'note' }, 'note'],
  ['a line that is not shown', {}, undefined],
  [
    'a warning, with its subject and cause',
    { level: 'warn', controller: 'note', namespace: 'a', name: 'b', error: 'may not\nlist' },
    ['note a/b: Said: may not', 'warning'],
  ],
  [
    'a failure of a custom resource, which its status shows',
    {
      ...{
        level: 'warn',
        controller: 'note',
        kind: 'Note',
        namespace: 'a',
        name: 'b',
        msg: 'reconcile failed',
      },
      ...{ reason: 'RenderFailed', error: 'cannot be rendered', err: { message: 'boo' } },
    },
    undefined,
  ],
  [
    'a failure of an object of others, whose status says nothing of it',
    { level: 'warn', controller: 'sets', kind: 'StatefulSet', name: 'b', error: 'cannot be rendered' },
    ['StatefulSet b: Said: cannot be rendered', 'warning'],
  ],
  [
    'a correction of drift, with fields and writers',
    {
      ...{ level: 'warn', controller: 'note', kind: 'Note', namespace: 'a', name: 'b' },
      ...{ msg: 'ConfigMap a/b corrected', child: 'ConfigMap', action: 'corrected' },
      ...{ managers: ['kubectl-patch'], fields: ['.data.text', '.data.more'] },
    },
    ['Note a/b: ConfigMap a/b corrected: .data.text, .data.more changed by kubectl-patch', 'warning'],
  ],
  [
    'drift whose writer was not seen',
    { level: 'warn', msg: 'ConfigMap a/b drifted', action: 'drifted', managers: [], fields: [] },
    ['ConfigMap a/b drifted: fields changed by another writer', 'warning'],
  ],
  [
    'settings that are refused, with the reasons',
    { level: 'error', msg: 'changed settings refused', errors: ['a: line 1: b', 'a: line 2: c'] },
    ['changed settings refused: a: line 1: b; a: line 2: c', 'error'],
  ],
  ['an error', { level: 'error', err: { message: 'boo', stack: 'boo at' } }, ['Said: boo', 'error']],
])('of the output of a controller: %s', (_, entry, line) => {
  const text = typeof entry === 'string' ? entry : JSON.stringify({ level: 'info', msg: 'Said', ...entry });
  expect(readLogLine(text, ['sets'])).toEqual(line);
});

describe('changes', () => {
  let version = 0;

  function object(kind: string, rest: object, metadata: object = {}): AnyObject {
    const base = { name: 'web', namespace: 'shop', uid: 'uid-child', resourceVersion: `${++version}` };
    const owned = { ...base, ownerReferences: [ownedBy('note')], ...metadata };
    return { apiVersion: 'v1', kind, ...rest, metadata: owned };
  }
  const map = (data: object, metadata = {}): AnyObject => object('ConfigMap', { data }, metadata);
  const secret = (key: string): AnyObject => object('Secret', { data: { key } });
  const kept = (value: string): object => ({
    annotations: { 'reconstruct.kosmos.io/applied-hash': value, 'deployment.kubernetes.io/revision': value },
  });

  test.each<[what: string, before: AnyObject[], after: AnyObject[], changes: string[]]>([
    ['a field', [map({ text: 'Hello' })], [map({ text: 'Hi' })], ['.data.text "Hello" -> "Hi"']],
    ['a new object', [], [map({ text: 'a' })], ['created']],
    ['another object of that name', [map({})], [map({}, { uid: 'next' })], ['created again']],
    ['nothing of what is gone, which the status shows', [map({})], [], []],
    [
      'no value of a Secret',
      [secret('b25l')],
      [secret('dHdv')],
      ['.data.key "(redacted, before)" -> "(redacted, after)"'],
    ],
    [
      'of the metadata of a Secret',
      [object('Secret', {})],
      [object('Secret', {})],
      ['its data has changed, which is not shown'],
    ],
    ['no bookkeeping', [map({ text: 'a' }, kept('1'))], [map({ text: 'a' }, kept('2'))], []],
  ])('%s', (_, before, after, changes) => {
    const found = changesBetween(before, after).map((change) => change.replace(/^\w+ shop\/web: /, ''));
    expect(found).toEqual(changes);
  });
});

describe('the follower', () => {
  const kind = { name: 'widget', type: WIDGET, children: [CONFIG_MAP], formerChildren: [] };
  let server: StoredServer;
  let clock: VirtualClock;
  let kinds: readonly object[];
  let stopping: AbortController;
  let documents: StatusDocument[];
  let changes: string[];
  let troubles: (readonly string[])[];

  beforeEach(() => {
    server = new StoredServer([
      anObject(WIDGET, 'a', { uid: 'uid-a' }),
      configMap('a', '5', { labels: { 'demo.example.com/widget': 'a' }, ownerReferences: [ownedBy('a')] }),
    ]);
    [clock, kinds, stopping] = [new VirtualClock(), [kind], new AbortController()];
    [documents, changes, troubles] = [[], [], []];
  });
  const look = (): void => {
    void followKinds({
      ...{ api: new Api(server), clock, signal: stopping.signal, kinds: () => kinds as KindData[] },
      onDocument: (document, all) => {
        documents.push(document);
        changes.push(...all);
      },
      onTrouble: (lines) => void troubles.push(lines),
    });
  };

  test('reports a look that fails, and retries until it succeeds or is stopped', async () => {
    server.refused.set('widgets', failure(429, 'TooManyRequests', 'busy'));
    look();
    await clock.advance(0);
    expect(troubles).toEqual([[expect.stringContaining('busy')]]);
    await clock.advance(1_000);
    expect(troubles).toHaveLength(2);
    server.refused.clear();
    await clock.advance(1_000);
    expect(documents.map(({ resources }) => resources.map(({ name }) => name))).toEqual([['a']]);
    expect(troubles.at(-1)).toEqual([]);

    stopping.abort();
    const { length } = server.requests;
    await clock.advance(60_000);
    expect(server.requests).toHaveLength(length);
  });

  test('reports no object as gone whose version is not served', async () => {
    look();
    await clock.advance(0);
    server.refused.set('configmaps', failure(404, undefined, '404 page not found'));
    kinds = [{ ...kind, children: [{ ...CONFIG_MAP, apiVersion: 'v9' }] }];
    await clock.advance(1_000);
    server.refused.clear();
    kinds = [kind];
    await clock.advance(1_000);
    expect(documents).toHaveLength(3);
    expect(changes).toEqual(['Widget shop/a: created', 'ConfigMap shop/a: created']);
  });
});

describe('views', () => {
  function note(
    word: 'Ready' | 'Reconciling',
    events: readonly EventStatus[] = [],
    message = 'Done',
  ): ResourceStatus {
    return {
      ...{
        apiVersion: 'example.com/v1',
        kind: 'Note',
        namespace: 'default',
        name: 'hello',
        uid: 'uid-hello',
      },
      verdict: { word, reason: 'Available', message, current: true },
      ...{ facts: [], events, notes: [], children: [] },
    };
  }
  const documentOf = (...resources: ResourceStatus[]): StatusDocument => ({ notes: [], resources });
  const event = {
    ...{ note: 'said', count: 1, at: '2026-01-01T00:00:50Z', regarding: { kind: 'Pod', name: 'hello' } },
  };
  const events = [
    { ...event, type: 'Warning', reason: 'BackOff' },
    { ...event, type: 'Normal', reason: 'Scheduled' },
  ];
  const trouble = { title: 'The samples have mistakes', lines: ['sample.yaml: line 4: \u001b[2J'] };

  test.each<[what: string, verdict: Partial<Verdict>, shown: readonly string[]]>([
    ['of before it became ready', { word: 'Ready', since: '2026-01-01T00:00:50Z' }, ['Late']],
    [
      'of its own that its conditions no longer report',
      { word: 'Stalled', reason: 'Late' },
      ['BackOff', 'Late'],
    ],
  ])('events %s are left out', (_, verdict, shown) => {
    let written = '';
    const live = Object.assign((text: string) => void (written = text), { clear: () => {}, done: () => {} });
    const write = (): void => undefined;
    const view = terminalView(live, { now: () => now, write, columns: () => 80, paint: (__, text) => text });
    const own = { ...event, type: 'Warning', regarding: { kind: 'Note', name: 'hello' } };
    const all = [
      { ...event, type: 'Warning', reason: 'BackOff' },
      { ...own, reason: 'Early' },
      { ...own, reason: 'Late', at: '2026-01-01T00:00:55Z' },
    ];
    const resource = note('Ready', all);
    view.show({
      document: documentOf({ ...resource, verdict: { ...resource.verdict, ...verdict } }),
    });
    expect(written.match(/(BackOff|Early|Late)(?=: )/g)).toEqual(shown);
  });

  test('a terminal: news scroll by, above the trees, what is wrong, and how to reach the cluster', () => {
    let written = '';
    const stream = { isTTY: true, columns: 70, rows: 30, write: (more: string) => void (written += more) };
    const live = createLogUpdate(stream as never as NodeJS.WritableStream, { showCursor: true });
    const view = terminalView(live, {
      ...{ now: () => now, write: stream.write, columns: () => stream.columns, paint: (_, text) => text },
    });
    view.show({
      ...{ controller: 'the controller runs', hints: ['  export KUBECONFIG=/k'], troubles: [trouble] },
    });
    view.report('ConfigMap a: .b 1 -> 2');
    written = '';
    view.show({ document: documentOf(note('Ready', events)) });
    view.report('may not list pods', 'warning');
    const visible = written.replaceAll(/\u001b\[[?0-9;]*[A-Za-z]/g, '');
    expect(visible).toMatch(/\d\d:\d\d:\d\d may not list pods\n/);
    expect(visible.slice(visible.indexOf('pods\n') + 5).split('\n')).toEqual([
      'Note default/hello        Ready Available',
      '  Events',
      '   10s  BackOff: Pod hello',
      '          said',
      '',
      'The samples have mistakes',
      '  sample.yaml: line 4: \\x1b[2J',
      '',
      'reconstruct dev: the controller runs',
      '  export KUBECONFIG=/k',
      '',
    ]);
    view.close();
    written = '';
    view.report('late');
    view.redraw();
    expect(written).toBe('');
  });
});
