// Figures: printed as they come, then as tables on the terminal, in bench/RESULTS.md and as JSON.
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
        return [`| ${[`${done}: ${label}`, ...cellsOf(row, operators)].join(' | ')} |`];
      }),
    );
    if (lines.length === 0) return '';
    const head = [`| | ${operators.join(' | ')} | ratio |`, '| --- | --: | --: | --: |'];
    return [...head, ...lines].join('\n');
  }

  /** Markdown, which is as easily read on a terminal: a section for each phase of some figures, a column for each operator. */
  markdown(operators) {
    const phases = [...Map.groupBy(this.rows, ({ phase }) => phase)];
    const small = phases.filter(([, { length }]) => length <= 2).flatMap(([, rows]) => rows);
    const others = small.map((row) => ({ ...row, figure: `${row.phase}: ${row.figure}` }));
    const sections = phases.filter(([, { length }]) => length > 2);
    if (others.length > 0) sections.push(['the rest', others]);
    const texts = sections.map(([phase, rows]) => {
      const lines = rows.map((row) => {
        const { figure, bar, values } = row;
        const limit = bar === undefined ? '' : `≤ ${bar}${values[operators[0]] > bar ? ' MISSED' : ''}`;
        return `| ${[figure, ...cellsOf(row, operators), limit].join(' | ')} |`;
      });
      const head = [`| | ${operators.join(' | ')} | ratio | bar |`, '| --- | --- | --- | --- | --- |'];
      return [`## ${phase}`, '', ...head, ...lines].join('\n');
    });
    return texts.join('\n\n');
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

export function writeReport({ figures, about, operators, json, isComplete }) {
  if (json) writeFileSync(json, `${JSON.stringify({ about, operators, rows: figures.rows }, null, 2)}\n`);
  const headline = figures.headline(operators);
  const text = [
    ...[
      '# Results',
      '',
      'Written by `npm run bench`; [README.md](README.md) says what is measured, and how.',
      '',
    ],
    ...(headline && [
      ...[
        `Ours beside an operator of the same kind written with ${operators[1]}, from one run on one machine.`,
      ],
      ...[
        'The ratio is ours to theirs; less is better in every line. Left out are times of phases in which other',
      ],
      ...[`programs took more than ${DISTURBED} % of the processors.`, '', headline, ''],
    ]),
    ...[...about.map((line) => `- ${line}`), '', figures.markdown(operators), ''],
  ].join('\n');
  if (isComplete) writeFileSync(join(root, 'bench/RESULTS.md'), text);
  return text;
}

/** A number with three digits or more, or counts by name. */
function shown(value) {
  if (typeof value === 'number') return String(Number(value.toPrecision(value >= 1000 ? 6 : 3)));
  return Object.entries(value)
    .map(([name, count]) => `${name}: ${count}`)
    .join(', ');
}
