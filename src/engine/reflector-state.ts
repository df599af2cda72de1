/** Where a reflector stands. */
export type ReflectorState =
  /** Getting all objects, at first or anew; what was known before is served meanwhile. */
  | { readonly phase: 'listing' }
  /** Following changes from this version on. */
  | { readonly phase: 'watching'; readonly resourceVersion: string }
  /** After a failure, until the next attempt; with a version it goes on watching from there, without listing. */
  | { readonly phase: 'waiting'; readonly error: Error; readonly resourceVersion?: string };
