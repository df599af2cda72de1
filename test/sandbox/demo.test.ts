import { readFileSync } from 'node:fs';
import { CommanderError } from 'commander';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { readYaml } from '../../src/contract/yaml.js';
import { CleanUp } from '../../sandbox/demo/clean-up.js';
import { History } from '../../sandbox/demo/hand-edits.js';
import { readableLogLine } from '../../sandbox/demo/log-line.js';
import { parseOptions } from '../../sandbox/demo/options.js';
import { countRequests, describeRequests } from '../../sandbox/demo/requests.js';
import {
  nodePorts,
  parseSample,
  sampleYaml,
  withImage,
  withoutNodePorts,
} from '../../sandbox/demo/sample.js';
import { Show } from '../../sandbox/demo/show.js';
import { summaryLines } from '../../sandbox/demo/summary.js';
import { formatTime, shellCommand, table, wrap } from '../../sandbox/demo/text.js';
import { until } from '../../sandbox/demo/until.js';

describe('the command line', () => {
  beforeEach(() => {
    vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  });
  afterEach(() => {
    vi.restoreAllMocks();
  });

  test('without arguments the demo plays in a sandbox that goes', () => {
    expect(parseOptions([])).toEqual({ keep: false });
  });

  test('takes a context and an image, or keeps the sandbox', () => {
    expect(parseOptions(['--context', 'mine', '--image', 'x'])).toEqual({
      ...{ keep: false, context: 'mine', image: 'x' },
    });
    expect(parseOptions(['--keep'])).toEqual({ keep: true });
  });

  test.each([['--nope'], ['word'], ['--context'], ['--keep', '--context', 'mine']])(
    'refuses %j',
    (...args) => {
      expect(() => parseOptions(args)).toThrow(CommanderError);
    },
  );

  test('help is no failure', () => {
    expect(() => parseOptions(['--help'])).toThrow(expect.objectContaining({ exitCode: 0 }));
  });
});

describe('text', () => {
  test.each([
    [0, 'less than 1 ms'],
    [999, '999 ms'],
    [999.7, '1.0 s'],
    [5_240, '5.2 s'],
    [59_960, '1 min 0 s'],
    [125_000, '2 min 5 s'],
  ])('%d ms are %s', (milliseconds, text) => {
    expect(formatTime(milliseconds)).toBe(text);
  });

  test('a command can be pasted into a shell', () => {
    expect(shellCommand(['kubectl', 'patch', 'x/y', '-p', `{"a":"it's"}`])).toBe(
      `kubectl patch x/y -p '{"a":"it'\\''s"}'`,
    );
  });

  test('prose is wrapped, long words are left whole', () => {
    expect(wrap('a bb  ccc dddddddd e', 6)).toEqual(['a bb', 'ccc', 'dddddddd', 'e']);
    expect(wrap('', 6)).toEqual([]);
  });

  test('a table has aligned columns', () => {
    expect(
      table([
        ['A', 'B'],
        ['long', 'b'],
      ]),
    ).toBe('A      B\nlong   b');
  });
});

describe('the show', () => {
  const told = (styled: boolean): string => {
    let text = '';
    const show = new Show({ write: (piece) => (text += piece), styled, width: 40 });
    show.heading('Title');
    show.command('kubectl get x');
    show.output('a\n\nb\n');
    show.seen('done');
    return text;
  };

  test('is plain where it is not styled', () => {
    expect(told(false)).toBe('\nTitle\n\n  $ kubectl get x\n    a\n\n    b\n\n  ✓ done\n');
  });

  test('says the same in style', () => {
    expect(told(true).replaceAll(/\x1b\[\d+m/g, '')).toBe(told(false));
    expect(told(true)).toContain('\x1b[32m✓\x1b[39m');
  });
});

describe('the sample', () => {
  const file = new URL('../../examples/appservice-sample.yaml', import.meta.url);
  const sample = parseSample(readFileSync(file, 'utf8'));

  test('asks for a node port, unless that is taken out', () => {
    expect(nodePorts(sample)).toEqual([30002]);

    const changed = readYaml(sampleYaml(withoutNodePorts(sample)));

    expect(changed).toEqual({
      ...sample,
      spec: { ...sample.spec, ports: [{ port: 80, targetPort: 80 }] },
    });
  });

  test('is read and written as kubectl does it', () => {
    expect(parseSample('spec: { image: E0, ports: [{ port: 0x50 }] }').spec.ports).toEqual([{ port: 80 }]);
    const written = readYaml(sampleYaml(withImage(sample, 'off')));

    expect(written).toMatchObject({ spec: { image: 'off' } });
  });

  test('takes another image', () => {
    expect(withImage(sample, 'other').spec).toEqual({ ...sample.spec, image: 'other' });
  });

  test('without ports stays as it is', () => {
    const { ports, ...spec } = sample.spec;
    expect(withoutNodePorts({ ...sample, spec })).toEqual({ ...sample, spec });
  });
});

test('the summary has a line for each step and one for all', () => {
  const lines = summaryLines([
    { title: 'One', outcome: 'seen', milliseconds: 5_000 },
    { title: 'Another', outcome: 'missed', milliseconds: 300 },
    { title: 'Third', outcome: 'skipped', milliseconds: 0 },
  ]);

  expect(lines).toEqual([
    '  ✓ 1. One         5.0 s',
    '  ✗ 2. Another    300 ms',
    '  - 3. Third     skipped',
    '    All steps      5.3 s',
  ]);
});

test('a watch counts once among the requests', () => {
  const entries = [
    { auditID: '1', verb: 'watch' },
    { auditID: '2', verb: 'patch' },
    { auditID: '1', verb: 'watch' },
    { auditID: '3', verb: 'patch' },
  ];

  expect(describeRequests(countRequests(entries))).toBe('3 requests: 2 patch, 1 watch');
});

describe('the history of a Deployment', () => {
  const lines = [
    'GENERATION   REPLICAS   IMAGE     TEAM',
    '1            3          a         <none>',
    '1            3          a         <none>',
    '2            3          b         <none>',
    '3            3          a         <none>',
  ];

  test('knows when an edit was put right', () => {
    const history = new History();
    lines.slice(0, 4).forEach((line, index) => {
      history.add(line, index * 10);
    });
    expect(history.repair('IMAGE', 'b', 'a')).toBeUndefined();
    history.add(lines[4]!, 50);

    expect(history.repair('IMAGE', 'b', 'a')?.map(({ at }) => at)).toEqual([20, 40]);
    expect(history.table().split('\n')).toHaveLength(4);
  });

  test('an edit that never was is not put right', () => {
    const history = new History();
    lines.forEach((line) => {
      history.add(line);
    });

    expect(history.repair('REPLICAS', '5', '3')).toBeUndefined();
  });
});

describe('a line of the log', () => {
  test('is made readable', () => {
    const line =
      '{"level":"warn","time":"2026-01-02T03:04:05.678Z","resource":"pods","x":1,"msg":"Watch failed"}';

    expect(readableLogLine(line)).toBe('03:04:05.678 warn Watch failed (resource=pods)');
  });

  test.each(['not JSON', 'null', '{"a":1}'])('that is none, %s, is left alone', (line) => {
    expect(readableLogLine(line)).toBe(line);
  });
});

describe('waiting', () => {
  const { signal } = new AbortController();

  test('ends with what was found, after looks that fail', async () => {
    const looks = [() => ({ seen: 'none' }), () => Promise.reject(new Error('x')), () => ({ found: 7 })];

    expect(await until('a number', () => looks.shift()!(), { deadlineMilliseconds: 10_000, signal })).toBe(7);
  });

  test('ends at the deadline with what there was instead', async () => {
    const waiting = until('a number', () => ({ seen: 'a word' }), { deadlineMilliseconds: 1, signal });

    await expect(waiting).rejects.toMatchObject({ expected: 'a number, within 0 s', seen: 'a word' });
  });

  test('ends when interrupted', async () => {
    const waiting = until('a number', () => ({ seen: 'a word' }), {
      deadlineMilliseconds: 10_000,
      signal: AbortSignal.abort(),
    });

    await expect(waiting).rejects.toThrow(/abort/);
  });
});

test('cleaning up goes backwards and does not stop at a failure', async () => {
  const done: string[] = [];
  const cleanUp = new CleanUp();
  cleanUp.add('end a', () => Promise.resolve(void done.push('a')));
  cleanUp.add('end b', () => Promise.reject(new Error('it is stuck')));
  cleanUp.add('end c', () => Promise.resolve(void done.push('c')));

  expect(await cleanUp.run()).toEqual(['Could not end b: it is stuck']);

  expect(done).toEqual(['c', 'a']);
  expect(await cleanUp.run()).toEqual([]);
});
