import type { Trouble, View } from './view.js';

/** What can be wrong, in the order in which it is shown. */
const ABOUT = ['configuration', 'crds', 'controller', 'samples', 'cluster', 'look', 'files'] as const;

type About = (typeof ABOUT)[number];

/** Everything that is wrong, each until it is put right. */
export class Troubles {
  private readonly all = new Map<About, Trouble>();

  constructor(private readonly view: Pick<View, 'troubles'>) {}

  /** @param lines none where it is right */
  put(about: About, title: string, lines: readonly string[]): void {
    if (lines.length > 0) this.all.set(about, { title, lines });
    else if (!this.all.delete(about)) return;
    this.view.troubles(ABOUT.flatMap((each) => this.all.get(each) ?? []));
  }
}
