import type { Kind } from '../../contract/kind.js';
import type { StatusDocument } from './document.js';

/**
 * Says that there are no custom resources, and of which kinds there can be none.
 * @param where the namespace; undefined for all
 */
export function noneOf(
  { notInstalled = [] }: Pick<StatusDocument, 'notInstalled'>,
  kinds: readonly Kind[],
  where: string | undefined,
): string {
  const names = kinds.map(({ type }) => type.kind).filter((name) => !notInstalled.includes(name));
  const place = where === undefined ? 'anywhere' : `in ${where}`;
  const none = `There is no ${joined(names, 'nor')} ${place}`;
  if (notInstalled.length === 0) return none;
  return `${none}; ${joined(notInstalled, 'and')} ${notInstalled.length === 1 ? "isn't" : "aren't"} installed`;
}

function joined(names: readonly string[], last: 'and' | 'nor'): string {
  const [end = '', ...before] = [...names].reverse();
  return before.length === 0 ? end : `${before.reverse().join(', ')} ${last} ${end}`;
}
