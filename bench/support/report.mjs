// Figures: told as they come, then as one table on the terminal, in bench/RESULTS.md and as JSON.
import { writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { root } from './util.mjs';

export class Figures {
  /** `{ phase, figure, unit, bar?, values: { [operator]: value } }`, in order. */
  rows = [];

  note(operator, phase, figure, value, unit = '', bar = undefined) {
    let row = this.rows.find((each) => each.phase === phase && each.figure === figure);
    if (!row) this.rows.push((row = { phase, figure, unit, bar, values: {} }));
    row.values[operator] = value;
    process.stderr.write(`  ${operator}: ${phase}: ${figure}: ${`${shown(value)} ${unit}`.trim()}\n`);
  }

  /** Markdown, which is as easily read on a terminal: a section for each phase, a column for each operator. */
  markdown(operators) {
    const [first, second] = operators;
    const sections = [...Map.groupBy(this.rows, ({ phase }) => phase)].map(([phase, rows]) => {
      const lines = rows.map(({ figure, unit, bar, values }) => {
        const [ours, theirs] = operators.map((name) => values[name]);
        const cells = [ours, theirs].map((value) =>
          value === undefined ? '' : `${shown(value)} ${unit}`.trim(),
        );
        const both = typeof ours === 'number' && typeof theirs === 'number' && theirs > 0;
        const limit = bar === undefined ? '' : `≤ ${bar}${ours > bar ? ' MISSED' : ''}`;
        return `| ${[figure, ...cells, both ? shown(ours / theirs) : '', limit].join(' | ')} |`;
      });
      const head = [`| | ${first} | ${second} | ratio | bar |`, '| --- | --- | --- | --- | --- |'];
      return [`## ${phase}`, '', ...head, ...lines].join('\n');
    });
    return sections.join('\n\n');
  }
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
  writeFileSync(json, `${JSON.stringify({ about, rows: figures.rows }, null, 2)}\n`);
  const head = ['# Results', '', 'Written by `npm run bench`; README.md says what is measured, and how.', ''];
  const text = [...head, ...about.map((line) => `- ${line}`), '', figures.markdown(operators), ''].join('\n');
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
