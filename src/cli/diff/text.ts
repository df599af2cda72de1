import type { FieldConflict } from '../../contract/change.js';
import type { Table } from '../../contract/controller.js';
import { describeRef } from '../../contract/object.js';
import { writeYaml } from '../../contract/yaml.js';
import type { ObjectPreview, PreviewAction } from '../../engine/preview/preview.js';
import { plain } from '../output.js';
import type { Color, Paint } from '../output.js';
import type { Outcome } from '../diff.js';
import { fieldChanges, shown } from './fields.js';

/** Reports whether anything would change, or would be refused. */
export function differs({ objects, explanations }: Outcome): boolean {
  return objects.some(isDifference) || explanations.some((explanation) => explanation.differs);
}

function isDifference({ action, leaves }: ObjectPreview): boolean {
  return action !== 'unchanged' || leaves.length > 0;
}

/** By action: what is said of an object, and in the summary of all. */
const ACTIONS: Readonly<Record<PreviewAction, { readonly said: string; readonly counted?: string }>> = {
  created: { said: 'would be created', counted: 'created' },
  changed: { said: 'would be changed', counted: 'changed' },
  recreated: { said: 'would be deleted and created again', counted: 'created again' },
  deleted: { said: 'would be deleted', counted: 'deleted' },
  unchanged: { said: 'would stay as it is' },
  failed: { said: "can't be applied", counted: 'refused' },
  skipped: { said: 'would be left as it is, since something before it fails', counted: 'skipped' },
};

export function textOf({ objects, explanations }: Outcome, paintAny: Paint): string {
  const paint: Paint = (color, text) => paintAny(color, plain(text));
  const counts = Object.entries(ACTIONS).flatMap(([action, { counted }]) => {
    const count = objects.filter((object) => object.action === action).length;
    return count > 0 && counted !== undefined ? [`${count} ${counted}`] : [];
  });
  return [
    ...objects.filter(isDifference).map((object) => objectText(object, paint)),
    ...explanations.map(({ of, summary, tables = [] }) =>
      [
        paint('bold', `${describeRef(of)} ${summary}`),
        ...tables.filter(({ rows }) => rows.length > 0).flatMap((table) => ['', ...tableLines(table, paint)]),
        '',
      ].join('\n'),
    ),
    ...(counts.length > 0 ? [paint('bold', `${counts.join(', ')}\n`)] : []),
  ].join('\n');
}

function objectText(object: ObjectPreview, paint: Paint): string {
  const { ref, action, error, takes, leaves } = object;
  const isOdd = action === 'failed' || action === 'skipped';
  const said = `${describeRef(ref)} ${ACTIONS[action].said}${error ? `: ${error.reason}` : ''}`;
  const conflict = (fate: string, { field, manager }: FieldConflict): string =>
    paint('yellow', `  ${field} is ${fate} ${manager || 'another field manager'}`);
  return [
    paint(isOdd ? 'yellow' : 'bold', said),
    ...(error ? [`  ${plain(error.message)}`] : []),
    ...contentLines(object, paint),
    ...takes.map((each) => conflict('taken from', each)),
    ...leaves.map((each) => conflict('left to', each)),
    '',
  ].join('\n');
}

function contentLines(object: ObjectPreview, paint: Paint): string[] {
  const { before, after } = shown(object);
  const marked = (mark: string, value: unknown, color: Color): string[] => {
    const lines = writeYaml(value).trimEnd().split('\n');
    return lines.map((line) => paint(color, `${mark} ${line}`));
  };
  if (object.action !== 'changed') return after ? marked('+', after, 'green') : [];
  return fieldChanges(before, after).flatMap(({ path, ...change }) => [
    `  ${plain(path)}`,
    ...('before' in change ? marked('-', change.before, 'red') : []),
    ...('after' in change ? marked('+', change.after, 'green') : []),
  ]);
}

function tableLines({ title, columns, rows }: Table, paint: Paint): string[] {
  const all = [columns, ...rows];
  const widths = columns.map((_, column) => Math.max(...all.map((row) => (row[column] ?? '').length)));
  const lines = all.map((row) =>
    `    ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('   ')}`.trimEnd(),
  );
  const [head = '', ...body] = lines;
  return [`  ${plain(title)}`, paint('dim', head), ...body.map(plain)];
}

/** Renders for programs: one document with every object, also those that would stay as they are. */
export function jsonOf(outcome: Outcome): string {
  const { objects, explanations } = outcome;
  const document = { differs: differs(outcome), objects: objects.map(objectOf), explanations };
  return `${JSON.stringify(document, undefined, 2)}\n`;
}

function objectOf(object: ObjectPreview): object {
  const { ref, action, error, takes, leaves } = object;
  const { before, after } = shown(object);
  return {
    ...ref,
    action,
    ...(action === 'changed' && { fields: fieldChanges(before, after) }),
    ...((action === 'created' || action === 'recreated') && after && { object: after }),
    ...(error && { reason: error.reason, message: error.message }),
    ...(takes.length > 0 && { takes }),
    ...(leaves.length > 0 && { leaves }),
  };
}
