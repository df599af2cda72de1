// Figures: printed as they come, then as tables on the terminal and in bench/, and as JSON.
import { writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { root } from './util.mjs';

/** Lines of the table at the head: what was done, its phase, and figures of it by what the line calls them. Less is better in each. */
const HEADLINES = [
  [
    '1,000 new AppServices',
    'cold burst of size 1',
    {
      'until every child exists': 'until every child exists',
      'requests for each': 'requests per custom resource',
      'CPU for each': 'CPU per custom resource',
    },
  ],
  [
    '10,000 new AppServices',
    'live burst of 10000 of size 0',
    { 'until every child exists': 'until every child exists', 'peak memory': 'peak RSS' },
  ],
  [
    'restart over 10,000',
    'restart over 10000',
    { 'until settled': 'until settled', writes: 'writes', 'peak memory': 'peak RSS' },
  ],
  [
    '1,000 settled, for 30 s',
    '1000 settled',
    { requests: 'requests beside watches and the lease', CPU: 'CPU' },
  ],
  ['no AppService', 'empty cluster', { memory: 'RSS' }],
  ['drift, 5 a second', 'drift, 5 a second', { 'corrected, p99': 'corrected, p99' }],
  [
    'drift of 10 % at once',
    'drift of 10 % at once',
    { 'until corrected': 'until all are corrected, median', CPU: 'CPU' },
  ],
  [
    '500 edits of one AppService',
    'a hot custom resource',
    {
      'until its status is right': 'status right after the last edit',
      'writes of its Deployment': 'writes of the Deployment',
    },
  ],
  [
    '1,000 updated',
    'update of all',
    { 'until every Deployment is changed': 'until every Deployment is changed', CPU: 'CPU' },
  ],
];
const TAKEN = 'share of the processors that others took';
/** Percent of the processors, above which a phase's times say more of the others than of the operator. */
const DISTURBED = 5;

export class Figures {
  /** `{ phase, figure, unit, bar?, values: { [operator]: value } }`, in order. */
  rows;

  constructor(rows = []) {
    this.rows = rows;
  }

  note(operator, phase, figure, value, unit = '', bar = undefined) {
    let row = this.find(phase, figure);
    if (!row) this.rows.push((row = { phase, figure, unit, bar, values: {} }));
    row.values[operator] = value;
    process.stderr.write(`  ${operator}: ${phase}: ${figure}: ${`${shown(value)} ${unit}`.trim()}\n`);
  }

  /**
   * Returns one table of the most important figures of both operators, won and lost, or nothing where none was measured. Leaves
   * out times of disturbed phases.
   */
  headline(operators) {
    const lines = HEADLINES.flatMap(([done, phase, figures]) =>
      Object.entries(figures).flatMap(([label, figure]) => {
        const row = this.find(phase, figure);
        const isMeasured = row && operators.every((name) => row.values[name] !== undefined);
        if (!isMeasured || (isElapsed(row) && this.isDisturbed(phase))) return [];
        return [[`${done}: ${label}`, ...cellsOf(row, operators)]];
      }),
    );
    if (lines.length === 0) return '';
    return table([['', ...operators, 'ratio'], ...lines], 'end');
  }

  /** Returns a table of the figures that have a bar, and whether ours keep it; what has to be 0, and is, is counted alone. */
  bars(ours) {
    const rows = this.rows.filter(({ bar, values }) => bar !== undefined && values[ours] !== undefined);
    const lines = rows.filter(({ bar, values }) => bar !== 0 || values[ours] !== 0);
    const texts = lines.map((row) => [
      `${row.phase}: ${row.figure}`,
      cellsOf(row, [ours])[0],
      limitOf(row, ours),
    ]);
    const kept = `${rows.length - lines.length} more figures have to be 0, and are: wrong statuses, needless requests and writes.`;
    const why = 'Why bars are missed: [README.md](README.md#missed-bars).';
    return `${table([['', ours, 'bar'], ...texts])}\n\n${kept} ${why}`;
  }

  /** Returns all figures: a table for each phase, a column for each operator. */
  details(operators) {
    const sections = [...Map.groupBy(this.rows, ({ phase }) => phase)].map(([phase, rows]) => {
      const lines = rows.map((row) => [row.figure, ...cellsOf(row, operators), limitOf(row, operators[0])]);
      return `## ${phase}\n\n${table([['', ...operators, 'ratio', 'bar'], ...lines])}`;
    });
    return sections.join('\n\n');
  }

  find(phase, figure) {
    return this.rows.find((each) => each.phase === phase && each.figure === figure);
  }

  isDisturbed(phase) {
    return Object.values(this.find(phase, TAKEN)?.values ?? {}).some((percent) => percent > DISTURBED);
  }
}

/** The values of a row by operator, and the ratio of the first to the second. */
function cellsOf({ unit, values }, operators) {
  const [ours, theirs] = operators.map((name) => values[name]);
  const both = typeof ours === 'number' && typeof theirs === 'number' && theirs > 0;
  const cells = [ours, theirs].map((value) => (value === undefined ? '' : `${shown(value)} ${unit}`.trim()));
  return [...cells, both ? shown(ours / theirs) : ''];
}

function limitOf({ bar, values }, ours) {
  return bar === undefined ? '' : `≤ ${bar}${values[ours] > bar ? ' MISSED' : ''}`;
}

/** Returns rows as a table in Markdown, as wide as its cells, with all columns but the first aligned to an end. */
function table([head, ...rows], align = 'start') {
  const widths = head.map((_, column) => Math.max(3, ...[head, ...rows].map((row) => row[column].length)));
  const isEnd = (column) => align === 'end' && column > 0;
  const line = (cells) => `| ${cells.join(' | ')} |`;
  const padded = (row) =>
    line(row.map((cell, column) => cell[isEnd(column) ? 'padStart' : 'padEnd'](widths[column])));
  const rule = widths.map((width, column) =>
    isEnd(column) ? `${'-'.repeat(width - 1)}:` : '-'.repeat(width),
  );
  return [padded(head), line(rule), ...rows.map(padded)].join('\n');
}

/** Reports whether a figure is a time on the clock, which others on the machine lengthen. */
function isElapsed({ figure, unit }) {
  return ['s', 'ms'].includes(unit) && !figure.startsWith('CPU');
}

export async function machine(sandbox) {
  const [{ model }] = cpus();
  const lines = [
    `${cpus().length} × ${model}, ${Math.round(totalmem() / 2 ** 30)} GiB`,
    `Node ${process.version} (V8 ${process.versions.v8})`,
  ];
  if (sandbox) {
    const { stdout } = await sandbox.kubectl(['version', '-o', 'json']);
    const { serverVersion } = JSON.parse(stdout);
    lines.push(`Kubernetes ${serverVersion.gitVersion}, with its controllers, on the same machine`);
  }
  return lines;
}

/**
 * Writes the figures as JSON, and, of a whole run, bench/RESULTS.md, which is to be read, and bench/results.txt, which has all.
 * @returns all
 */
export function writeReport({ figures, about, operators, json, isComplete }) {
  if (json) writeFileSync(json, `${JSON.stringify({ about, operators, rows: figures.rows }, null, 2)}\n`);
  const run = about.map((line) => `- ${line}`);
  const headline = figures.headline(operators);
  const beside = [
    ...[
      `Ours beside an operator of the same kind written with ${operators[1]}, from one run on one machine.`,
    ],
    ...[
      'The ratio is ours to theirs; less is better in every line. Left out are times of phases in which other',
    ],
    ...[`programs took more than ${DISTURBED} % of the processors.`, '', headline, ''],
  ];
  const results = [
    ...[
      '# Results',
      '',
      'Written by `npm run bench`; [README.md](README.md) says what is measured, and how, and',
    ],
    ...['[results.txt](results.txt) has every figure of the run.', '', ...(headline && beside), ...run, ''],
    ...['## Bars', '', figures.bars(operators[0]), ''],
  ];
  const text = [...run, '', figures.details(operators), ''].join('\n');
  if (isComplete) {
    writeFileSync(join(root, 'bench/RESULTS.md'), results.join('\n'));
    writeFileSync(join(root, 'bench/results.txt'), text);
  }
  return text;
}

/** A number with three digits or more, or counts by name. */
function shown(value) {
  if (typeof value === 'number') return String(Number(value.toPrecision(value >= 1000 ? 6 : 3)));
  return Object.entries(value)
    .map(([name, count]) => `${name}: ${count}`)
    .join(', ');
}
