import type { FieldConflict } from '../../contract/change.js';
import type { Explanation, Table } from '../../contract/controller.js';
import { describeRef } from '../../contract/object.js';
import { writeYaml } from '../../contract/yaml.js';
import type { ObjectPreview, PreviewAction } from '../../engine/preview/preview.js';
import type { Color, Paint } from '../paint.js';
import { plain } from '../plain.js';
import { fieldChanges } from './fields.js';
import type { FieldChange } from './fields.js';
import { isDifference } from './outcome.js';
import type { Outcome } from './outcome.js';
import { shown } from './redacted.js';

const SAYING: Readonly<Record<PreviewAction, string>> = {
  created: 'would be created',
  changed: 'would be changed',
  recreated: 'would be deleted and made anew',
  deleted: 'would be deleted',
  unchanged: 'would stay as it is',
  failed: "can't be applied",
  skipped: 'would be left as it is, since something before it fails',
};

const COUNTED: readonly (readonly [PreviewAction, string])[] = [
  ...([
    ['created', 'created'],
    ['changed', 'changed'],
    ['recreated', 'made anew'],
  ] as const),
  ...([
    ['deleted', 'deleted'],
    ['failed', 'refused'],
    ['skipped', 'skipped'],
  ] as const),
];

/** For people: every object that would be another one, field by field. Empty where none would. */
export function textOf(outcome: Outcome, paintAny: Paint): string {
  const paint: Paint = (color, text) => paintAny(color, plain(text));
  const parts = [
    ...outcome.objects.filter(isDifference).map((object) => objectText(object, paint)),
    ...outcome.explanations.map((explanation) => explanationText(explanation, paint)),
  ];
  const counts = countsOf(outcome.objects);
  if (counts !== '') parts.push(paint('bold', `${counts}\n`));
  return parts.join('\n');
}

function objectText(object: ObjectPreview, paint: Paint): string {
  const { ref, action, error, takes, leaves } = object;
  const isOdd = action === 'failed' || action === 'skipped';
  const said = `${describeRef(ref)} ${SAYING[action]}${error ? `: ${error.reason}` : ''}`;
  return [
    paint(isOdd ? 'yellow' : 'bold', said),
    ...(error ? [`  ${plain(error.message)}`] : []),
    ...contentLines(object, paint),
    ...takes.map((conflict) => paint('yellow', `  ${conflict.field} is taken from ${managerOf(conflict)}`)),
    ...leaves.map((conflict) => paint('yellow', `  ${conflict.field} is left to ${managerOf(conflict)}`)),
    '',
  ].join('\n');
}

function contentLines(object: ObjectPreview, paint: Paint): string[] {
  const { before, after } = shown(object);
  if (object.action === 'changed')
    return fieldChanges(before, after).flatMap((change) => fieldLines(change, paint));
  return after ? marked('+', after, 'green', paint) : [];
}

function fieldLines({ path, ...change }: FieldChange, paint: Paint): string[] {
  return [
    `  ${plain(path)}`,
    ...('before' in change ? marked('-', change.before, 'red', paint) : []),
    ...('after' in change ? marked('+', change.after, 'green', paint) : []),
  ];
}

function marked(mark: string, value: unknown, color: Color, paint: Paint): string[] {
  const text = writeYaml(value).trimEnd();
  return text.split('\n').map((line) => paint(color, `${mark} ${line}`));
}

function managerOf({ manager }: FieldConflict): string {
  return manager || 'another field manager';
}

function explanationText({ of, summary, tables = [] }: Explanation, paint: Paint): string {
  return [
    paint('bold', `${describeRef(of)} ${summary}`),
    ...tables.filter(({ rows }) => rows.length > 0).flatMap((table) => ['', ...tableLines(table, paint)]),
    '',
  ].join('\n');
}

function tableLines({ title, columns, rows }: Table, paint: Paint): string[] {
  const all = [columns, ...rows];
  const widths = columns.map((_, column) => Math.max(...all.map((row) => (row[column] ?? '').length)));
  const line = (row: readonly string[]): string =>
    `    ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('   ')}`.trimEnd();
  return [
    `  ${plain(title)}`,
    ...all.map((row, index) => (index === 0 ? paint('dim', line(row)) : plain(line(row)))),
  ];
}

function countsOf(objects: readonly ObjectPreview[]): string {
  return COUNTED.flatMap(([action, word]) => {
    const count = objects.filter((object) => object.action === action).length;
    return count > 0 ? [`${count} ${word}`] : [];
  }).join(', ');
}
