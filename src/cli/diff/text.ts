import type { FieldConflict } from '../../contract/change.js';
import type { Table } from '../../contract/controller.js';
import { describeRef } from '../../contract/object.js';
import type { ObjectRef } from '../../contract/object.js';
import { writeYaml } from '../../values/yaml.js';
import type { ObjectPreview, PreviewAction } from '../../engine/preview/preview.js';
import { forPerson } from '../cluster.js';
import { plain } from '../output.js';
import type { Color, Paint } from '../output.js';
import { differs, isDifference } from './compare.js';
import type { Outcome } from './compare.js';
import { fieldChanges, redactedPair } from './fields.js';
import type { LiveOutcome, SameChange } from './live.js';

/** Words for each action, of an object and in the summary of all. */
const ACTIONS: Readonly<Record<PreviewAction, { readonly said: string; readonly counted?: string }>> = {
  created: { said: 'would be created', counted: 'to create' },
  changed: { said: 'would be changed', counted: 'to change' },
  recreated: { said: 'would be deleted and created again', counted: 'to recreate' },
  deleted: { said: 'would be deleted', counted: 'to delete' },
  unchanged: { said: 'would stay as it is' },
  failed: { said: "can't be applied", counted: 'refused' },
  skipped: { said: 'would be left as it is, since something before it fails', counted: 'skipped' },
};

export function textOf({ objects, explanations }: Outcome, paintAny: Paint): string {
  const paint: Paint = (color, text) => paintAny(color, plain(text));
  const counts = countsOf((action) => objects.filter((object) => object.action === action).length);
  return [
    ...objects.filter(isDifference).map((object) => objectText(object, paint)),
    ...explanations.map(({ of, summary, tables = [] }) =>
      [
        paint('bold', `${describeRef(of)} ${summary}`),
        ...tables.filter(({ rows }) => rows.length > 0).flatMap((table) => ['', ...tableLines(table, paint)]),
        '',
      ].join('\n'),
    ),
    ...(counts === NONE ? [] : [paint('bold', `${counts}\n`)]),
  ].join('\n');
}

export const NONE = 'no changes';

/** Maximum number of lines in which a value of a change is shown. */
const MAX_LINES = 8;

/** Renders what the same change would do to many: the most severe first, then what is kept in full. */
export function liveText(outcome: LiveOutcome, paintAny: Paint): string {
  const paint: Paint = (color, text) => paintAny(color, plain(text));
  const { compared, counts, changes, others, kept, paused } = outcome;
  const kinds = Object.entries(compared).map(([kind, count]) => `${number(count)} ${kind}`);
  const objects = Object.values(counts).reduce((sum, count) => sum + count, 0);
  const summary = [
    `${kinds.join(', ') || 'nothing'} compared`,
    ...(paused > 0 ? [`${number(paused)} of them paused, whose changes wait`] : []),
    `with ${number(objects)} ${objects === 1 ? 'object' : 'objects'}: ${countsOf((action) => counts[action] ?? 0)}`,
  ].join(', ');
  return [
    paint('bold', `${summary}\n`),
    ...changes.map((change) => changeText(change, paint)),
    ...(others > 0 ? [`${number(others)} other changes, each in few objects\n`] : []),
    ...kept.objects.map((object) => objectText(object, paint)),
  ].join('\n');
}

function changeText(change: SameChange, paint: Paint): string {
  const { kind, action, path, field, count, of, examples, message, reason, rollout } = change;
  const what = path === undefined ? ` ${ACTIONS[action].said}` : ` ${path} ${field ?? ''}`;
  const marked = (mark: string, color: Color, value: unknown): string[] => {
    const lines = value === undefined ? [] : writeYaml(value).trimEnd().split('\n');
    const shown = lines.length > MAX_LINES ? [...lines.slice(0, MAX_LINES - 1), '...'] : lines;
    return shown.map((line) => paint(color, `${mark} ${line}`));
  };
  return [
    paint(
      reason === undefined ? 'bold' : 'yellow',
      `${kind}:${what}${reason === undefined ? '' : `: ${reason}`} in ${number(count)} of ${number(of)}`,
    ),
    paint('dim', `  e.g. ${examples.join(', ')}${rollout ? '; pods are replaced' : ''}`),
    ...(message === undefined ? [] : [`  ${plain(message)}`]),
    ...marked('-', 'red', change.before),
    ...marked('+', 'green', change.after),
    '',
  ].join('\n');
}

export function liveJson({ kept, errors, ...outcome }: LiveOutcome): object {
  return { differs: outcome.changes.length > 0, ...outcome, objects: kept.objects.map(objectOf) };
}

/** Returns a summary such as `2 to create, 1 to change`. */
function countsOf(count: (action: PreviewAction) => number): string {
  const counts = (Object.keys(ACTIONS) as PreviewAction[]).flatMap((action) => {
    const [found, { counted }] = [count(action), ACTIONS[action]];
    return found > 0 && counted !== undefined ? [`${number(found)} ${counted}`] : [];
  });
  return counts.join(', ') || NONE;
}

/** Returns a number such as `10,000`. */
export function number(count: number): string {
  return count.toLocaleString('en');
}

function objectText(object: ObjectPreview, paint: Paint): string {
  const { ref, action, error, takes, leaves, drops = [], waitsFor } = object;
  const isOdd = action === 'failed' || action === 'skipped';
  const said = `${describeRef(ref)} ${ACTIONS[action].said}${error ? `: ${error.reason}` : ''}${onceReady(waitsFor)}`;
  const conflict = (fate: string, { field, manager }: FieldConflict): string =>
    paint('yellow', `  ${field} is ${fate} ${manager || 'another field manager'}`);
  return [
    paint(isOdd ? 'yellow' : 'bold', said),
    ...(error ? [`  ${plain(forPerson(error.message))}`] : []),
    ...contentLines(object, paint),
    ...takes.map((each) => conflict('taken from', each)),
    ...leaves.map((each) => conflict('left to', each)),
    ...drops.map((each) => conflict('dropped, which is set by', each)),
    '',
  ].join('\n');
}

/** Returns the end of a sentence on what would be done, where it would wait. */
export function onceReady(waitsFor: ObjectRef | undefined): string {
  return waitsFor ? `, once ${describeRef(waitsFor)} is ready` : '';
}

function contentLines(object: ObjectPreview, paint: Paint): string[] {
  const { before, after } = redactedPair(object);
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
export function documentOf(outcome: Outcome): object {
  const { objects, explanations } = outcome;
  return { differs: differs(outcome), objects: objects.map(objectOf), explanations };
}

function objectOf(object: ObjectPreview): object {
  const { ref, action, error, takes, leaves, drops = [], waitsFor } = object;
  const { before, after } = redactedPair(object);
  return {
    ...ref,
    action,
    ...(waitsFor && { waitsFor }),
    ...(action === 'changed' && { fields: fieldChanges(before, after) }),
    ...((action === 'created' || action === 'recreated') && after && { object: after }),
    ...(error && { reason: error.reason, message: forPerson(error.message) }),
    ...(takes.length > 0 && { takes }),
    ...(leaves.length > 0 && { leaves }),
    ...(drops.length > 0 && { drops }),
  };
}
