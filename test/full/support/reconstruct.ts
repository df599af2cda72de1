import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { withFolder } from './commands.js';
import { command } from './installation.js';
import type { Outcome } from './installation.js';

/** A command of `reconstruct` as it is built, as somebody. */
export class Reconstruct {
  constructor(
    private readonly kubeconfig: string,
    private readonly first: readonly string[],
    private readonly last: readonly string[] = [],
  ) {}

  async run(...args: readonly string[]): Promise<Outcome> {
    return command(...this.first, '--kubeconfig', this.kubeconfig, ...this.last, ...args);
  }

  /** Of objects that stand in one file. */
  async of(objects: readonly object[], ...args: readonly string[]): Promise<Outcome> {
    return withFolder(async (folder) => {
      const source = join(folder, 'resources.yaml');
      await writeFile(source, objects.map((object) => `---\n${stringify(object)}`).join(''));
      return this.run(source, ...args);
    });
  }
}
