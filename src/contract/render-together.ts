import type { KindContext } from './kind.js';
import type { AnyObject, CustomResource } from './object.js';

/**
 * Turns all custom resources of a kind into objects: in memory, without I/O, always the same for the same input, and
 * whatever their order.
 * @param resources valid, and with the defaults of the schema
 */
export type RenderTogether = (resources: readonly CustomResource[], context: KindContext) => RenderedTogether;

/** What becomes of all custom resources of a kind. */
export interface RenderedTogether {
  /** In the order in which they are written. */
  readonly manifests: readonly TogetherManifest[];
  /** What is to be said of the resources. @default - nothing */
  readonly findings?: readonly Finding[];
}

/** Objects that are written to one file. */
export interface TogetherManifest {
  /**
   * The one that they are made of, from which the file has its name. @default - several: the file is named by the kind
   */
  readonly of?: CustomResource;
  readonly objects: readonly AnyObject[];
}

/** Something to be said of what was given. */
export interface Finding {
  /** An `error` refuses everything that was given, with exit code 2; a `note` is said on stderr. */
  readonly level: 'error' | 'note';
  /** A sentence: what is wrong, and what to do about it. */
  readonly message: string;
  /** Which one is spoken of, as given. @default - all of them */
  readonly of?: CustomResource;
  /** Where in it. @default - the whole */
  readonly path?: readonly (string | number)[];
}
