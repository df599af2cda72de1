import type { Kind } from '../../contract/kind.js';
import { kindName } from '../arguments.js';

/** How a kind is called among the values: by its name alone where no other is called so. */
export function kindKey(kind: Kind, kinds: readonly Kind[]): string {
  return kinds.some((other) => other !== kind && other.name === kind.name) ? kindName(kind) : kind.name;
}

/** Whether a kind is to be installed, as an expression of a template. */
export function kindOn(kind: Kind, kinds: readonly Kind[]): string {
  return `index $.Values.kinds ${JSON.stringify(kindKey(kind, kinds))}`;
}
