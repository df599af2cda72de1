import type { AnyObject, CustomResource } from './object.js';

/** A field that passes from one writer to another without a moment of being nobody's. */
export interface HandOver {
  /**
   * Identity, and the field with the value that it has: it is applied as it is. Where nobody owns the field, with the
   * version too (`metadata.resourceVersion`): only that tells whether somebody has changed the value meanwhile.
   */
  readonly object: AnyObject;
  readonly fieldManager: string;
  /**
   * Takes the field from whoever has it: only for one that has to go, since the API server doesn't take the children
   * beside it. What the custom resource doesn't control is never forced.
   * @default false - where somebody has changed the value meanwhile, it is read and the plan made again
   */
  readonly force?: boolean;
}

/**
 * Tells which fields have to pass to another writer. It must be pure, and return nothing for what has been handed over: it is
 * asked at each reconcile.
 */
export type HandOverFunction<Spec> = (input: {
  readonly cr: CustomResource<Spec>;
  /** The children as the API server had them last: identity, status, and what their type's `keep` adds. */
  readonly children: readonly AnyObject[];
}) => readonly HandOver[];
