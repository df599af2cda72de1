// The table: on the terminal, in bench/RESULTS.md and as JSON.
import { writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { shown } from './figures.mjs';
import { root } from './util.mjs';

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

export function writeReport({ rows, about, options, json, markdown }) {
  writeFileSync(json, `${JSON.stringify({ about, options, rows }, null, 2)}\n`);
  if (markdown) writeFileSync(join(root, 'bench/RESULTS.md'), toMarkdown({ rows, about }));
  process.stdout.write(`${toText(rows)}\n`);
}

function toText(rows) {
  const cells = rows.map(({ phase, figure, value, unit, bar, verdict = '' }) => [
    ...[phase, figure, `${shown(value)} ${unit}`.trim()],
    ...[bar === undefined ? '' : `≤ ${bar}`, verdict],
  ]);
  const widths = [0, 1, 2, 3].map((column) => Math.max(...cells.map((row) => row[column].length)));
  return cells
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

function toMarkdown({ rows, about }) {
  const phases = Map.groupBy(rows, ({ phase }) => phase);
  const sections = [...phases].map(([phase, figures]) => {
    const lines = figures.map(
      ({ figure, value, unit, bar, verdict = '' }) =>
        `| ${figure} | ${`${shown(value)} ${unit}`.trim()} | ${bar === undefined ? '' : `≤ ${bar}`} | ${verdict} |`,
    );
    return [`## ${phase}`, '', '| figure | measured | bar | |', '| --- | --- | --- | --- |', ...lines].join(
      '\n',
    );
  });
  const head = [
    '# Results',
    '',
    'Written by `npm run bench`; see README.md for what is measured, and how.',
    '',
  ];
  return `${[...head, ...about.map((line) => `- ${line}`), '', sections.join('\n\n')].join('\n')}\n`;
}
