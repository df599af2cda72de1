import { describe, expect, test } from 'vitest';
import { LineView } from '../../../src/cli/dev/line-view.js';
import { frameOf, LiveView } from '../../../src/cli/dev/live-view.js';
import type { Board } from '../../../src/cli/dev/live-view.js';
import { cutTo, Screen } from '../../../src/cli/dev/screen.js';
import type { Paint } from '../../../src/cli/paint.js';
import type { EventStatus, ResourceStatus, StatusDocument } from '../../../src/cli/status/document.js';
import { VirtualClock } from '../../engine/support/virtual-clock.js';

const plain: Paint = (_, text) => text;
const now = new Date('2026-01-01T00:01:00Z');

function note(word: 'Ready' | 'Reconciling', events: readonly EventStatus[] = []): ResourceStatus {
  const verdict = { word, reason: 'Available', message: 'All is there', current: true };
  return {
    ...{ apiVersion: 'example.com/v1', kind: 'Note', namespace: 'default', name: 'hello', uid: 'uid-hello' },
    ...{ verdict, facts: [], events, notes: [], children: [] },
  };
}

const documentOf = (...resources: ResourceStatus[]): StatusDocument => ({ notes: [], resources });

const event = {
  ...{ note: 'said', count: 1, at: '2026-01-01T00:00:50Z', regarding: { kind: 'Pod', name: 'hello' } },
};

const board: Board = {
  controller: 'the controller runs what was loaded at 12:00:00',
  hints: { kubeconfig: '/tmp/sandbox/admin', kubectl: 'kubectl', example: 'note/hello' },
  troubles: [
    { title: 'The samples are wrong', lines: ['sample.yaml: document 1, line 4: spec.txt: unknown field'] },
  ],
  document: documentOf(
    note('Ready', [
      { ...event, type: 'Warning', reason: 'BackOff' },
      { ...event, type: 'Normal', reason: 'Scheduled' },
    ]),
  ),
  changes: {
    at: now.getTime() - 5_000,
    all: [{ what: 'changed', text: 'ConfigMap default/hello: .data.a 1 -> 2' }],
  },
  told: [
    { at: now.getTime() - 40_000, text: 'long ago', tone: 'news' },
    { at: now.getTime() - 40_000, text: 'may not list pods', tone: 'warning' },
  ],
};

test('the screen shows what is wrong, what changed, what warns, and the trees', () => {
  expect(frameOf(board, { now, width: 80, paint: plain })).toEqual([
    'reconstruct dev: the controller runs what was loaded at 12:00:00',
    'Ctrl-C ends it, and leaves nothing behind. In another terminal:',
    '  export KUBECONFIG=/tmp/sandbox/admin',
    '  kubectl edit note/hello',
    '',
    'The samples are wrong',
    '  sample.yaml: document 1, line 4: spec.txt: unknown field',
    '',
    'Changed last, 5s ago',
    '  ConfigMap default/hello: .data.a 1 -> 2',
    '',
    '40s ago: may not list pods',
    '',
    'Note default/hello        Ready Available',
    '  Events',
    '   10s  BackOff: Pod hello',
    '          said',
  ]);
});

test('long texts are broken, many changes counted, and controls of a terminal made harmless', () => {
  const all = Array.from({ length: 15 }, (_, index) => ({
    what: 'changed' as const,
    text: `change ${index}`,
  }));
  const lines = frameOf(
    {
      controller: 'c',
      troubles: [{ title: 'a word '.repeat(10), lines: ['\u001b[2J'] }],
      changes: { at: 0, all },
      told: [],
    },
    { now, width: 40, paint: plain },
  );
  expect(lines.filter((line) => line.length > 40)).toEqual([]);
  const hints = { kubeconfig: `/tmp/${'x'.repeat(60)}`, kubectl: 'kubectl' };
  const narrow = frameOf({ ...board, hints }, { now, width: 40, paint: plain });
  expect(narrow.join('')).toContain(`export KUBECONFIG=${hints.kubeconfig}`);
  expect(lines).toContain('  ... and 3 more');
  expect(lines).toContain('  \\x1b[2J');
});

describe('a terminal', () => {
  class FakeTerminal {
    columns = 20;
    rows = 4;
    written = '';
    write(text: string): void {
      this.written += text;
    }
    /** What was written since this was asked last. */
    taken(): string {
      const text = this.written;
      this.written = '';
      return text;
    }
  }

  test('only lines that are others are written, and nothing where none is', () => {
    const terminal = new FakeTerminal();
    const screen = new Screen(terminal);
    screen.draw(['one', 'two']);
    expect(terminal.taken()).toBe(
      '\u001b[?1049h\u001b[?25l\u001b[H\u001b[2J\u001b[1;1Hone\u001b[K\u001b[2;1Htwo\u001b[K',
    );
    screen.draw(['one', 'three']);
    expect(terminal.taken()).toBe('\u001b[2;1Hthree\u001b[K');
    screen.draw(['one', 'three']);
    expect(terminal.taken()).toBe('');
    screen.draw(['one']);
    expect(terminal.taken()).toBe('\u001b[2;1H\u001b[K');
  });

  test('another size draws everything anew', () => {
    const terminal = new FakeTerminal();
    const screen = new Screen(terminal);
    screen.draw(['one']);
    terminal.taken();
    terminal.columns = 10;
    screen.draw(['one']);
    expect(terminal.taken()).toBe('\u001b[H\u001b[2J\u001b[1;1Hone\u001b[K');
  });

  test('what has no room is cut, and said to be more', () => {
    const terminal = new FakeTerminal();
    new Screen(terminal).draw(['1', '2', 'three is much too long', '4', '5', '6']);
    expect(terminal.taken().split('\u001b[K')).toEqual([
      expect.stringMatching(/1$/),
      expect.stringMatching(/2$/),
      expect.stringMatching(/three is much too lo$/),
      expect.stringMatching(/\.\.\. 3 more lines: ma$/),
      '',
    ]);
    expect(cutTo('\u001b[1mabcdef\u001b[22m', 3)).toBe('\u001b[1mabc\u001b[22m');
  });

  test('it is as it was before, once, when it is closed', () => {
    const terminal = new FakeTerminal();
    const screen = new Screen(terminal);
    screen.close();
    expect(terminal.taken()).toBe('');
    screen.draw(['one']);
    terminal.taken();
    screen.close();
    screen.close();
    expect(terminal.taken()).toBe('\u001b[?25h\u001b[?1049l');
  });

  test('the view draws several things that come together once, and nothing after it is closed', () => {
    const clock = new VirtualClock(now.getTime());
    const terminal = new FakeTerminal();
    terminal.columns = 60;
    terminal.rows = 12;
    const view = new LiveView({ clock, paint: plain, screen: new Screen(terminal) });
    view.told('The sandbox starts');
    view.controller('the controller starts');
    expect(terminal.taken()).toBe('');
    clock.jump(20);
    const drawn = terminal.taken();
    expect(drawn).toContain('reconstruct dev: the controller starts');
    expect(drawn.split('The sandbox starts')).toHaveLength(2);
    view.changed([{ what: 'made', text: 'first' }]);
    clock.jump(500);
    view.changed([{ what: 'made', text: 'second' }]);
    clock.jump(20);
    expect(terminal.taken()).toContain('second');
    view.close();
    terminal.taken();
    view.told('late');
    clock.jump(100);
    expect(terminal.taken()).toBe('');
  });
});

describe('lines', () => {
  function lineView(): { view: LineView; lines: () => string[] } {
    let text = '';
    const clock = { now: () => now.getTime() };
    const view = new LineView({ clock, write: (more) => void (text += more) });
    return {
      view,
      lines: () =>
        text
          .split('\n')
          .map((line) => line.replace('2026-01-01T00:01:00Z ', ''))
          .slice(0, -1),
    };
  }

  test('each thing that is new is told once, with its time', () => {
    const { view, lines } = lineView();
    view.controller('runs');
    view.controller('runs');
    view.hints({ kubeconfig: '/k', kubectl: 'kubectl' });
    view.hints({ kubeconfig: '/k', kubectl: 'kubectl' });
    view.document(documentOf(note('Reconciling')));
    view.document(documentOf(note('Ready')));
    view.document(documentOf(note('Ready')));
    view.document(documentOf());
    expect(lines()).toEqual([
      'runs',
      'Ctrl-C ends it, and leaves nothing behind. In another terminal:',
      '  export KUBECONFIG=/k',
      'Note default/hello: Reconciling Available: All is there',
      'Note default/hello: Ready Available: All is there',
      'Note default/hello: is gone',
    ]);
  });

  test('what is wrong is told when it comes and when it is mended', () => {
    const { view, lines } = lineView();
    const trouble = { title: 'The samples are wrong', lines: ['line 4'] };
    view.troubles([trouble]);
    view.troubles([trouble]);
    view.troubles([{ ...trouble, lines: ['line 5'] }]);
    view.troubles([]);
    expect(lines()).toEqual([
      'The samples are wrong',
      '  line 4',
      'The samples are wrong',
      '  line 5',
      'No longer so: The samples are wrong',
    ]);
  });

  test('an event that says what the status has said is not told, nor one again that was out of sight', () => {
    const { view, lines } = lineView();
    const events = [
      { ...event, type: 'Warning', reason: 'Stalled', note: 'All is there' },
      { ...event, type: 'Normal', reason: 'Scheduled' },
    ];
    view.document(documentOf(note('Reconciling', events)));
    view.document(documentOf({ ...note('Ready'), verdict: { ...note('Ready').verdict, message: 'Else' } }));
    view.document(
      documentOf({ ...note('Ready', events), verdict: { ...note('Ready').verdict, message: 'Else' } }),
    );
    view.document(
      documentOf(
        note('Ready', [{ ...event, type: 'Normal', reason: 'Scheduled', at: '2026-01-01T00:00:55Z' }]),
      ),
    );
    expect(lines()).toEqual([
      'Note default/hello: Reconciling Available: All is there',
      'Event of Pod hello: Normal Scheduled: said',
      'Note default/hello: Ready Available: Else',
      'Note default/hello: Ready Available: All is there',
      'Event of Pod hello: Normal Scheduled: said',
    ]);
  });

  test('what is not seen since its type is not served is not told to be gone', () => {
    const { view, lines } = lineView();
    const child = {
      ...{ apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'default', name: 'hello', uid: 'uid-d' },
      ...{ phase: 'ready' as const, message: 'is applied', pods: [] },
    };
    view.document(documentOf({ ...note('Ready'), children: [child] }));
    view.document(documentOf({ ...note('Ready'), notServed: ['deployments of apps/v9'] }));
    expect(lines().at(-1)).toBe('Deployment default/hello: is not seen any more');
  });

  test('nor is one whose type may not be listed, but a custom resource that is gone', () => {
    const { view, lines } = lineView();
    const child = {
      ...{ apiVersion: 'v1', kind: 'Service', namespace: 'default', name: 'hello', uid: 'uid-s' },
      ...{ phase: 'ready' as const, message: 'is applied', pods: [] },
    };
    const other = { ...note('Ready'), name: 'other', uid: 'uid-other' };
    view.document({
      ...documentOf({ ...note('Ready'), children: [child] }),
      resources: [{ ...note('Ready'), children: [child] }, other],
    });
    view.document(documentOf({ ...note('Ready'), unseen: [{ plural: 'services', forbidden: true }] }));
    expect(lines().slice(-2)).toEqual([
      'Service default/hello: is not seen any more',
      'Note default/other: is gone',
    ]);
  });

  test('changes are told, but not what is gone, which the status tells', () => {
    const { view, lines } = lineView();
    view.changed([
      { what: 'changed', text: 'ConfigMap a: .b 1 -> 2' },
      { what: 'gone', text: 'ConfigMap c: gone' },
    ]);
    expect(lines()).toEqual(['ConfigMap a: .b 1 -> 2']);
  });
});
