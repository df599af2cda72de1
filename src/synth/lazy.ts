import type { IResolver, Lazy, ResolutionContext } from 'cdk8s';
import { spelledForCdk8s } from './plain.js';

/** Where jsii notes which class it is, whatever copy of its package the class comes from. */
const RUNTIME_TYPE = Symbol.for('jsii.rtti');

/** Whether it is a lazy value, of our copy of cdk8s or of another: an author's project may bring its own. */
export function isLazy(value: unknown): value is Lazy {
  const { produce } = (value ?? {}) as Partial<Lazy>;
  // Asked of every value that is rendered, and nearly all of them answer here.
  if (typeof produce !== 'function') return false;
  const type = (value as Lazy).constructor as { readonly [RUNTIME_TYPE]?: { readonly fqn?: string } };
  return type[RUNTIME_TYPE]?.fqn === 'cdk8s.Lazy';
}

/**
 * Produces lazy values of any copy of cdk8s; its own resolver knows only those of the same copy. Comes first, so it also
 * keeps maps from being taken for something else.
 */
export const lazyResolver: IResolver = {
  resolve(context: ResolutionContext): void {
    if (isLazy(context.value)) context.replaceValue(context.value.produce());
    const spelled = spelledForCdk8s(context.value);
    if (spelled) context.replaceValue(spelled);
  },
};
