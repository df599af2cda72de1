import type { Document } from './document.js';
import type { Path } from './problem.js';

/** Something to be said of a document. */
export interface Remark {
  /** @default - what is said is about several, or all */
  readonly document?: Document;
  /** Where in the document; empty for the whole. */
  readonly path: Path;
  /** A sentence that needs no place: `spec.size: is missing; add it`. */
  readonly message: string;
}

/** With its place: `examples/web.yaml: document 2, line 14: spec.size: is missing; add it`. */
export function remarkLine({ document, path, message }: Remark): string {
  return document ? `${placeOf(document, path)}: ${message}` : message;
}

/** `examples/web.yaml: document 2, line 14`, as far as that is known. */
export function placeOf(document: Document, path: Path): string {
  const { file, index } = document;
  const line = document.lineOf(path);
  const inside = [...(index > 0 ? [`document ${index}`] : []), ...(line > 0 ? [`line ${line}`] : [])];
  return [file, ...(inside.length > 0 ? [inside.join(', ')] : [])].join(': ');
}
