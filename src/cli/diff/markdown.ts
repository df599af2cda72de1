import { showValue } from '../../values/path.js';
import type { ChangeGroup, LiveDiff } from './live.js';
import { ACTIONS, liveText, number, rolloutText } from './text.js';

/** Names the comment that a later run brings up to date. */
const MARKER = '<!-- reconstruct diff -->';

/** Maximum number of rows, and of characters below them: a comment on GitHub takes 65,536 characters. */
const MAX_ROWS = 40;
const MAX_DETAILS = 30_000;

/** Renders for a comment on a pull request: what it means in the first line, a table of the changes, and details that are folded. */
export function markdownOf(diff: LiveDiff): string {
  const { counts, changes, others } = diff;
  const [summary = '', ...lines] = liveText(diff, (_, text) => text).split('\n');
  const refused = counts.failed ? [`${number(counts.failed)} can't be applied as rendered`] : [];
  const meaning = [rolloutText(diff) || 'No pods would be rolled', ...refused].join('; ');
  const more = others + Math.max(0, changes.length - MAX_ROWS);
  const text = lines.join('\n').trim();
  const details = text.length > MAX_DETAILS ? `${text.slice(0, MAX_DETAILS)}\n...` : text;
  const fence = '`'.repeat(Math.max(3, ...[...details.matchAll(/`+/g)].map(([run]) => run.length + 1)));
  const table = [
    ...['', '| Objects | Change | For example |', '| --- | --- | --- |'],
    ...changes.slice(0, MAX_ROWS).map(rowOf),
    ...(more > 0 ? ['', `${number(more)} other changes`] : []),
    ...['', '<details><summary>Details</summary>', '', `${fence}diff`, details, fence, '', '</details>'],
  ];
  return [`**${meaning}** (${summary})`, MARKER, ...(changes.length > 0 ? table : []), ''].join('\n');
}

function rowOf(change: ChangeGroup): string {
  const { kind, action, path, field = '', count, of, examples, message, rollout, before, after } = change;
  const values = [before, after]
    .filter((value) => value !== undefined)
    .map((value) => code(showValue(value)));
  const what = [
    path === undefined ? ACTIONS[action].ofObject : `${code(path)} ${field}`,
    ...(values.length > 0 ? [values.join(' → ')] : []),
    ...(message === undefined ? [] : [code(message)]),
  ].join(': ');
  const rolls = rollout && action !== 'deleted' ? '; **pods are replaced**' : '';
  return `| ${number(count)} of ${number(of)} ${kind} | ${what}${rolls} | ${examples.map(code).join(', ')} |`;
}

/** Quotes a text, so that nothing in it is markup, or notifies a person. */
function code(text: string): string {
  return `\`${text.replace(/\s+/g, ' ').replaceAll('`', "'").replaceAll('|', '\\|')}\``;
}
