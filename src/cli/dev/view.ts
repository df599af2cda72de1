import type { StatusDocument } from '../status/document.js';
import type { Change } from './changes.js';

/** How a line is meant. */
export type Tone = 'news' | 'warning' | 'error';

/** Something that keeps the cluster from being what the files say, and what is done meanwhile. */
export interface Trouble {
  /** As in `The configuration can't be loaded; the controller goes on with what was loaded at 12:30:01`. */
  readonly title: string;
  /** With file and line, as far as that is known. */
  readonly lines: readonly string[];
}

/** How a cluster is reached from another terminal, and what ends it all. */
export interface Hints {
  readonly kubeconfig: string;
  /** As it is typed: `kubectl`, or the path of the sandbox's. */
  readonly kubectl: string;
  /** As in `guestbook/hello`. @default - there is no custom resource yet */
  readonly example?: string;
}

/** Shows an author what goes on. */
export interface View {
  /** Something has happened. */
  told(text: string, tone?: Tone): void;
  /** What the controller is doing, as in `The controller runs what was saved at 12:30:01`. */
  controller(text: string): void;
  /** Everything that is wrong now. */
  troubles(all: readonly Trouble[]): void;
  changed(changes: readonly Change[]): void;
  document(document: StatusDocument): void;
  hints(hints: Hints): void;
  /** Leaves the terminal as it was. */
  close(): void;
}

/** What somebody types elsewhere. */
export function hintLines({ kubeconfig, kubectl, example }: Hints): string[] {
  return [
    'Ctrl-C ends it, and leaves nothing behind. In another terminal:',
    `  export KUBECONFIG=${kubeconfig}`,
    ...(example === undefined ? [] : [`  ${kubectl} edit ${example}`]),
  ];
}
