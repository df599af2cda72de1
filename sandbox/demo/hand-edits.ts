import type { Scene } from './cluster.js';
import { inTime } from './readiness.js';
import { formatTime, table } from './text.js';

/** A state that the Deployment was in. */
export interface Version {
  /** As kubectl prints them: generation, replicas, image, label. */
  readonly cells: readonly string[];
  /** When it came, in milliseconds since the history began. */
  readonly at: number;
}

/** The columns of a version and where their values lie in a Deployment. */
const columns = [
  ['GENERATION', '.metadata.generation'],
  ['REPLICAS', '.spec.replicas'],
  ['IMAGE', '.spec.template.spec.containers[0].image'],
  ['TEAM', '.metadata.labels.team'],
] as const;

/** Every version of the sample's Deployment since the history was begun, as a watch delivers them. */
export class History {
  readonly #versions: Version[] = [];
  #began = Date.now();

  /** Takes a line of kubectl. Headers, and versions that differ in nothing that is shown, add nothing. */
  add(line: string, now = Date.now()): void {
    const cells = line.trim().split(/\s+/);
    if (cells[0] === columns[0][0] || cells.length !== columns.length) return;
    if (this.#versions.at(-1)?.cells.join() === cells.join()) return;
    if (this.#versions.length === 0) this.#began = now;
    this.#versions.push({ cells, at: now - this.#began });
  }

  get last(): Version | undefined {
    return this.#versions.at(-1);
  }

  /** The first version with that in a column, and the first one later that has `right` there again. */
  repair(
    column: 'IMAGE' | 'REPLICAS',
    wrong: string,
    right: string,
  ): readonly [Version, Version] | undefined {
    const index = columns.findIndex(([name]) => name === column);
    const edited = this.#versions.findIndex(({ cells }) => cells[index] === wrong);
    const repaired = this.#versions.slice(edited + 1).find(({ cells }) => cells[index] === right);
    const broken = this.#versions[edited];
    return broken && repaired ? [broken, repaired] : undefined;
  }

  table(): string {
    const rows = this.#versions.map(({ cells, at }) => [...cells, formatTime(at)]);
    return table([[...columns.map(([name]) => name), 'SEEN AFTER'], ...rows]);
  }
}

/** Begins the history of the Deployment. @returns it, and what ends it */
export async function followDeployment(scene: Scene): Promise<[History, () => void]> {
  const history = new History();
  const { kubectl } = scene.cluster;
  const output = `custom-columns=${columns.map(([name, path]) => `${name}:${path}`).join(',')}`;
  const args = ['get', 'deployment', scene.sample.metadata.name, '--watch', '-o', output];
  kubectl.show(args, '(in the background)');
  const end = kubectl.follow(args, (line) => {
    history.add(line);
  });
  try {
    await inTime(scene, 'the watch to show the Deployment', () =>
      history.last ? { found: true } : { seen: 'nothing yet' },
    );
  } catch (error) {
    end();
    throw error;
  }
  return [history, end];
}
