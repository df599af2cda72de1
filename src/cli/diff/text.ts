import type { FieldConflict } from '../../contract/change.js';
import type { Table } from '../../contract/plan.js';
import { describeRef } from '../../contract/object.js';
import type { ObjectRef } from '../../contract/object.js';
import { writeYaml } from '../../values/yaml.js';
import type { ObjectPreview, PreviewAction } from '../../engine/preview/preview.js';
import { forPerson } from '../cluster.js';
import { plain } from '../output.js';
import type { Color, Paint } from '../output.js';
import { differs, isDifference } from './compare.js';
import type { Diff } from './compare.js';
import { fieldChanges, redactedPair } from '../../engine/preview/fields.js';
import type { ChangeGroup, LiveDiff } from './live.js';

/** Words for each action: of an object, and in the summary of all. */
export const ACTIONS: Readonly<
  Record<PreviewAction, { readonly ofObject: string; readonly ofAll?: string }>
> = {
  created: { ofObject: 'would be created', ofAll: 'to create' },
  changed: { ofObject: 'would be changed', ofAll: 'to change' },
  recreated: { ofObject: 'would be deleted and created again', ofAll: 'to recreate' },
  deleted: { ofObject: 'would be deleted', ofAll: 'to delete' },
  unchanged: { ofObject: 'would stay as it is' },
  failed: { ofObject: "can't be applied", ofAll: 'refused' },
  skipped: { ofObject: 'would be left as it is, since something before it fails', ofAll: 'skipped' },
};

export const NONE = 'no changes';

/** Maximum number of lines in which a value of a change of many is shown. */
const MAX_LINES = 8;

export function textOf({ objects, explanations }: Diff, paintAny: Paint): string {
  const paint = plainly(paintAny);
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

function plainly(paint: Paint): Paint {
  return (color, text) => paint(color, plain(text));
}

/** Renders what the same change would do to many: the most severe first, then what is kept in full. */
export function liveText(
  { compared, counts, changes, others, kept, paused, rollouts }: LiveDiff,
  paintAny: Paint,
): string {
  const paint = plainly(paintAny);
  const kinds = Object.entries(compared).map(([kind, count]) => `${number(count)} ${kind}`);
  const objects = Object.values(counts).reduce((sum, count) => sum + count, 0);
  const summary = [
    `${kinds.join(', ') || 'nothing'} compared`,
    ...(paused > 0 ? [`${number(paused)} of them paused, whose changes wait`] : []),
    `with ${number(objects)} ${objects === 1 ? 'object' : 'objects'}: ${countsOf((action) => counts[action] ?? 0)}`,
  ].join(', ');
  return [
    paint('bold', `${summary}\n`),
    ...[rolloutText({ rollouts, changes })].filter(Boolean).map((text) => paint('yellow', `${text}\n`)),
    ...changes.map((change) => changeText(change, paint)),
    ...(others > 0 ? [`${number(others)} other changes, each in few objects\n`] : []),
    ...kept.objects.map((object) => objectText(object, paint)),
  ].join('\n');
}

/** Returns sentences such as `200 Deployments would roll their pods`; an empty text where none would. */
export function rolloutText({ rollouts, changes }: Pick<LiveDiff, 'rollouts' | 'changes'>): string {
  const deletedOf = (kind: string): number =>
    changes.find((one) => one.kind === kind && one.action === 'deleted' && one.rollout)?.count ?? 0;
  const sentence = (would: string, countOf: (kind: string) => number): string => {
    const all = Object.keys(rollouts).map((kind) => [kind, countOf(kind)] as const);
    const counts = all.filter(([, count]) => count > 0);
    const kinds = counts.map(([kind, count]) => `${number(count)} ${kind}${count === 1 ? '' : 's'}`);
    const whose = counts.length === 1 && counts[0]?.[1] === 1 ? 'its' : 'their';
    return counts.length === 0 ? '' : `${kinds.join(' and ')} would ${would} ${whose} pods`;
  };
  const rolled = sentence('roll', (kind) => (rollouts[kind] ?? 0) - deletedOf(kind));
  return [rolled, sentence('be deleted, with', deletedOf)].filter(Boolean).join('; ');
}

function changeText(change: ChangeGroup, paint: Paint): string {
  const { kind, action, path, field = '', count, of, examples, message, reason, rollout } = change;
  const what = path === undefined ? ACTIONS[action].ofObject : `${path} ${field}`;
  const why = reason === undefined ? '' : `: ${reason}`;
  return [
    paint(why === '' ? 'bold' : 'yellow', `${kind}: ${what}${why} in ${number(count)} of ${number(of)}`),
    paint(
      'dim',
      `  e.g. ${examples.join(', ')}${rollout && action !== 'deleted' ? '; pods are replaced' : ''}`,
    ),
    ...(message === undefined ? [] : [`  ${plain(message)}`]),
    ...valueLines(change, paint, MAX_LINES),
    '',
  ].join('\n');
}

/** Returns the lines of the values before and after a change. */
function valueLines(change: object, paint: Paint, max = Infinity): string[] {
  const marked = (side: string, mark: string, color: Color): string[] => {
    const value = (change as Readonly<Record<string, unknown>>)[side];
    const lines = value === undefined ? [] : writeYaml(value).trimEnd().split('\n');
    const shown = lines.length > max ? [...lines.slice(0, max - 1), '...'] : lines;
    return shown.map((line) => paint(color, `${mark} ${line}`));
  };
  return [...marked('before', '-', 'red'), ...marked('after', '+', 'green')];
}

export function liveJson({ kept, ...diff }: LiveDiff): object {
  return { differs: diff.changes.length > 0, ...diff, objects: kept.objects.map(objectOf) };
}

/** Returns a summary such as `2 to create, 1 to change`. */
function countsOf(count: (action: PreviewAction) => number): string {
  const counts = (Object.keys(ACTIONS) as PreviewAction[]).flatMap((action) => {
    const [found, { ofAll }] = [count(action), ACTIONS[action]];
    return found > 0 && ofAll !== undefined ? [`${number(found)} ${ofAll}`] : [];
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
  const why = error ? `: ${error.reason}` : '';
  const { before, after } = redactedPair(object);
  const conflict = (fate: string, { field, manager }: FieldConflict): string =>
    paint('yellow', `  ${field} is ${fate} ${manager || 'another field manager'}`);
  return [
    paint(
      isOdd ? 'yellow' : 'bold',
      `${describeRef(ref)} ${ACTIONS[action].ofObject}${why}${onceReady(waitsFor)}`,
    ),
    ...(error ? [`  ${plain(forPerson(error.message))}`] : []),
    ...(action === 'changed'
      ? fieldChanges(before, after).flatMap((field) => [
          `  ${plain(field.path)}`,
          ...valueLines(field, paint),
        ])
      : valueLines({ after }, paint)),
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
export function documentOf(diff: Diff): object {
  const { objects, explanations } = diff;
  return { differs: differs(diff), objects: objects.map(objectOf), explanations };
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
