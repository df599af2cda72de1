import { OperatorError } from '../../contract/error.js';
import type { Kind } from '../../contract/kind.js';
import type { AnyObject, CustomResource } from '../../contract/object.js';
import { render } from '../../synth/render.js';
import { policyFor } from './surroundings.js';
import type { Surroundings } from './surroundings.js';

/** As long and as random as a hash is. */
const DIGEST = /^[\w+/=:-]{6,}$/;

/**
 * Texts in the objects of a custom resource that are made of its name in a way that can't be undone, such as the hash of a
 * file that has it in it: what differs under another name of the same length, beside the name itself.
 */
export function digestsOf(
  made: (name: string) => readonly AnyObject[],
  name: string,
  objects = made(name),
): readonly string[] {
  const other = `z${name.slice(1)}` === name ? `y${name.slice(1)}` : `z${name.slice(1)}`;
  const found: string[] = [];
  compare(objects, made(other), (text, otherText) => {
    const isName = text.replaceAll(name, other) === otherText;
    if (!isName && text.length === otherText.length && DIGEST.test(text)) found.push(text);
  });
  return found;
}

/** Of what a custom resource in the cluster is rendered to now. */
export function digestsOfLive(kind: Kind, cr: CustomResource, around: Surroundings): readonly string[] {
  if (!('each' in kind.rendering)) return [];
  const { each } = kind.rendering;
  const policy = policyFor(kind, around);
  const made = (name: string): AnyObject[] =>
    render(each, { ...cr, metadata: { ...cr.metadata, name } }, policy);
  try {
    return digestsOf(made, cr.metadata.name);
  } catch (error) {
    // It is told in the status.
    if (error instanceof OperatorError) return [];
    throw error;
  }
}

/** In place of each of them, the same word. */
export function withoutDigests(text: string, digests: readonly string[]): string {
  return digests.reduce((left, digest) => left.replaceAll(digest, '<digest>'), text);
}

function compare(one: unknown, two: unknown, told: (one: string, two: string) => void): void {
  if (typeof one === 'string' && typeof two === 'string') {
    if (one !== two) told(one, two);
    return;
  }
  if (typeof one !== 'object' || typeof two !== 'object' || !one || !two) return;
  for (const [key, value] of Object.entries(one)) compare(value, (two as Record<string, unknown>)[key], told);
}
