import type { AnyObject, CustomResource } from './object.js';

/** A field that passes from one writer to another without a moment of being nobody's. */
export interface HandOver {
  /** Identity, and the field with the value that it has: it is applied as it is, and never forced. */
  readonly object: AnyObject;
  readonly fieldManager: string;
}

/** Must be pure, and return nothing for what has been handed over: it is asked at each reconcile. */
export type HandOverFunction<Spec> = (input: {
  readonly cr: CustomResource<Spec>;
  /** The children as the API server had them last: identity, status, and what their type's `keep` adds. */
  readonly children: readonly AnyObject[];
}) => readonly HandOver[];
