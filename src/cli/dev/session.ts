import { once } from 'node:events';
import { existsSync, fstatSync } from 'node:fs';
import type { Stats } from 'node:fs';
import { basename, dirname, join, resolve, sep } from 'node:path';
import { watch } from 'chokidar';
import type { FSWatcher } from 'chokidar';
import createLogUpdate from 'log-update';
import { messageOf } from '../../contract/error.js';
import type { Api } from '../../client/api.js';
import { ApiError } from '../../client/api-error.js';
import { aborted, sleep, systemClock } from '../../client/clock.js';
import { withCluster } from '../cluster.js';
import type { SharedOptions } from '../options.js';
import { untilInterrupted } from '../exit.js';
import { CliError, paint } from '../output.js';
import { followKinds } from './follower.js';
import { loadProject, projectOptions, startController } from './load.js';
import type { Project, ProjectOptions } from './load.js';
import { applyFolder, DeployedProject, loadStand } from './stand.js';
import type { ControlPlane, Guard, Stand } from './stand.js';
import { lineView, terminalView, usage } from './view.js';
import type { Trouble, View } from './view.js';

interface DevOptions extends SharedOptions {
  /** Whether an operator is started; false with `--no-operator`. */
  readonly operator?: boolean;
}

/**
 * `reconstruct dev`: runs a kind in a cluster of its own, and reloads it on each save, until it is interrupted.
 *
 * @throws CliError with exit code 2 where there is no sandbox in this package, 3 where it can't be started
 */
export async function runDev(samples: readonly string[], flags: DevOptions): Promise<void> {
  if (flags.operator === false) return runControlPlane();
  const options = projectOptions(samples, flags);
  const { startGuard, startStand } = await loadStand();
  const view = openView();
  view.report('The sandbox starts');
  await withControlPlane(startStand, view.report, async (stand, signal) => {
    const guard = await startGuard();
    signal.addEventListener('abort', view.close);
    try {
      await withCluster({ kubeconfig: stand.adminKubeconfig }, async (cluster, { api }) => {
        const deployed = new DeployedProject(stand, cluster);
        const session = new Session(options, view, guard, stand, deployed, api, signal);
        await session.run().finally(() => session.close());
      });
    } finally {
      view.close();
      await guard.release();
    }
  });
}

/** Keeps a control plane in which nothing is installed until it is interrupted. */
async function runControlPlane(): Promise<void> {
  const { startEmpty } = await loadStand();
  const write = (line: string): void => void process.stdout.write(`${line}\n`);
  await withControlPlane(startEmpty, write, async (cluster, signal) => {
    write('A control plane runs, in which nothing is installed.');
    usage(cluster).forEach(write);
    await aborted(signal);
  });
}

async function withControlPlane<T extends ControlPlane>(
  start: (log: (line: string) => void) => Promise<T>,
  report: (line: string) => void,
  use: (cluster: T, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const work = async (signal: AbortSignal): Promise<void> => {
    const starting = start((line) => {
      if (!signal.aborted) report(line);
    }).catch((error: unknown) => {
      throw new CliError(`The sandbox can't be started: ${messageOf(error)}`, 3);
    });
    const cluster = await Promise.race([starting, aborted(signal)]);
    // How far a start has come isn't known; all of it ends with this process.
    if (!cluster) process.exit();
    try {
      await use(cluster, signal);
    } finally {
      await cluster.stop();
    }
  };
  endWithReader();
  // A terminal that is closed interrupts too.
  await untilInterrupted(work, { signals: ['SIGINT', 'SIGTERM', 'SIGHUP'] });
}

/** A terminal that was closed, or a reader such as `head` that has ended, takes nothing any more: all is removed, as after Ctrl-C. */
function endWithReader(): void {
  let hasEnded = false;
  process.stdout.on('error', () => {
    if (!hasEnded) process.kill(process.pid, 'SIGTERM');
    hasEnded = true;
  });
}

function openView(): View {
  const { stdout } = process;
  const now = (): Date => new Date();
  const write = (text: string): void => void stdout.write(text);
  if (!stdout.isTTY) return lineView(now, write);
  const view = terminalView(createLogUpdate, { now, write, paint, columns: () => stdout.columns });
  stdout.on('resize', view.redraw);
  // After Ctrl-Z and fg.
  process.on('SIGCONT', view.redraw);
  process.on('exit', view.close);
  return view;
}

/** Folders that an author doesn't write; and names of backups, swap files, probes and logs that editors and tools write. */
export const IGNORED =
  /^(node_modules|dist|vendor)$|^\.|~$|\.(sw[a-z]|tmp|bak|log)$|^#.*#$|^\d+$|___jb_(tmp|old)___$/;

/** Modules and data: their removal counts. Other files may have been temporary ones of a tool. */
const LOADED = /\.([cm]?[jt]s|json|ya?ml)$/;

/** Time without writes after which a save counts as complete: an editor may write several times, or replace the file. */
const QUIET_MILLISECONDS = 150;

/** Folder beside the configuration of what the samples need: Secrets, CRDs of others and their objects. */
const PREREQUISITES = 'prerequisites';

/** Subjects of troubles, in the order in which they are shown. */
const ABOUT = [
  ...(['configuration', 'crds', 'prerequisites', 'controller'] as const),
  ...(['samples', 'cluster', 'look', 'files'] as const),
];

/**
 * Keeps a cluster as the files of a project say, and shows it. A file that can't be loaded or applied changes nothing: the controller and
 * the samples go on as before.
 */
class Session {
  private readonly troubles = new Map<(typeof ABOUT)[number], Trouble>();
  private readonly root: string;
  private readonly saved = new Set<string>();
  private watcher: FSWatcher | undefined;
  private stopController: ReturnType<typeof startController> | undefined;
  private loadedAt = '';
  /** The controller hasn't loaded the files as they are. */
  private isStale = true;
  /** The prerequisites haven't been applied as they are. */
  private isIncomplete = true;
  private sources: readonly string[] = [];
  private kinds: Project['kinds'] = [];
  private following: Promise<void> | undefined;

  constructor(
    private readonly options: ProjectOptions,
    private readonly view: View,
    private readonly guard: Guard,
    private readonly stand: Stand,
    private readonly deployed: DeployedProject,
    private readonly api: Api,
    private readonly signal: AbortSignal,
  ) {
    this.root = dirname(resolve(options.config ?? 'any'));
  }

  async run(): Promise<void> {
    const { signal } = this;
    const watcher = watch(this.root, {
      ...{ ignoreInitial: true, followSymlinks: false },
      // A report of a reload would cause the next one.
      ignored: (path, stats) => path !== this.root && (IGNORED.test(basename(path)) || isOwnOutput(stats)),
    });
    this.watcher = watcher;
    watcher.on('all', (_, path) => this.saved.add(resolve(path)));
    watcher.on('error', (error) => {
      this.trouble('files', 'Not every save will be seen', [messageOf(error)]);
    });
    try {
      await once(watcher, 'ready', { signal });
      for (;;) {
        await this.reload();
        while (this.saved.size === 0) await once(watcher, 'all', { signal });
        for (let count = 0; count !== this.saved.size;) {
          count = this.saved.size;
          await sleep(systemClock, QUIET_MILLISECONDS, signal);
        }
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  async close(): Promise<void> {
    await this.watcher?.close();
    await this.stopController?.(0);
  }

  private isOver(): boolean {
    return this.signal.aborted;
  }

  private async reload(): Promise<void> {
    const isFirst = this.loadedAt === '' && this.saved.size === 0;
    const files = [...this.saved].filter((file) => existsSync(file) || LOADED.test(file));
    this.saved.clear();
    if (files.length === 0 && !isFirst) return;
    try {
      const project = await this.load();
      // Until it succeeds: saves in between may fail.
      const sources = [...this.sources, ...(project?.sources ?? [])];
      const isSample = (file: string): boolean =>
        sources.some((source) => file === resolve(source) || dirname(file) === resolve(source));
      const prerequisites = join(this.root, PREREQUISITES) + sep;
      const isPrerequisite = (file: string): boolean => file.startsWith(prerequisites);
      this.isIncomplete ||= files.some(isPrerequisite);
      this.isStale ||= !project || !files.every((file) => isSample(file) || isPrerequisite(file));
      if (!project) return;
      this.sources = project.sources;
      this.watcher?.add(project.sources.filter((source) => !resolve(source).startsWith(this.root + sep)));
      await this.apply(project);
    } catch (error) {
      // Rights are granted in the namespaces that kinds name.
      const remedy =
        error instanceof ApiError && error.objectIsGone ? `; create it in ${PREREQUISITES}/` : '';
      if (!this.isOver())
        this.view.report(`The save couldn't be processed: ${messageOf(error)}${remedy}`, 'error');
    }
  }

  private async load(): Promise<Project | undefined> {
    const { project, problems } = await loadProject(this.options, this.guard, this.signal);
    if (this.isOver()) return undefined;
    const meanwhile = this.stopController
      ? `the controller goes on with what was loaded at ${this.loadedAt}`
      : 'no controller runs';
    this.trouble('configuration', `The configuration can't be loaded; ${meanwhile}`, problems);
    return project;
  }

  private async apply(project: Project): Promise<void> {
    const { kinds, rules, samples, mistakes } = project;
    const { view, stand, deployed } = this;
    // Rights are granted in namespaces of theirs; what needs a kind of the project is refused until it is installed.
    await this.applyPrerequisites({ isEarly: true });
    if (this.isOver()) return;
    const { refused, left } = await deployed.install(kinds, rules);
    if (this.isOver()) return;
    for (const crd of left)
      // The kind may be removed for a moment only, so its objects aren't deleted.
      view.report(
        `The configuration has no kind ${crd} any more: its CRD and its objects stay in this cluster, without a controller; kubectl delete crd ${crd} removes them`,
        'warning',
      );
    this.trouble('crds', 'The cluster keeps the CRD that it has', refused);
    await this.applyPrerequisites();
    if (this.isOver()) return;
    if (this.isStale || !this.stopController) await this.restart(project);
    if (mistakes.length === 0) {
      const rejected = await deployed.update(samples, this.signal);
      if (this.isOver()) return;
      this.trouble('cluster', 'The cluster keeps what it has of these samples', rejected);
      // Their namespaces are there now.
      await this.applyPrerequisites();
    }
    view.show({ hints: usage(stand, samples[0]) });
    this.trouble('samples', 'The samples have mistakes; the last good ones stay', mistakes);
    this.kinds = kinds;
    if (!this.isOver()) this.following ??= this.follow();
  }

  /** Applies them where they have changed, or weren't applied whole. */
  private async applyPrerequisites({ isEarly = false } = {}): Promise<void> {
    const folder = join(this.root, PREREQUISITES);
    if (!this.isIncomplete) return;
    const none = { applied: [], refused: [] };
    const { applied, refused } = existsSync(folder) ? await applyFolder(this.stand, folder) : none;
    if (this.isOver()) return;
    // What is refused may need a kind that is installed next.
    if (isEarly && refused.length > 0) return;
    for (const line of applied) this.view.report(`${PREREQUISITES}/: ${line}`);
    this.trouble('prerequisites', `Not everything in ${PREREQUISITES}/ is applied`, refused);
    this.isIncomplete = refused.length > 0;
  }

  private follow(): Promise<void> {
    const { api, view, signal } = this;
    return followKinds({
      ...{ api, clock: systemClock, signal, kinds: () => this.kinds },
      onDocument: (document, changes) => {
        for (const change of changes) view.report(change);
        view.show({ document });
      },
      onTrouble: (lines) => {
        this.trouble('look', "The custom resources can't be read, retrying", lines);
      },
    });
  }

  /** Two controllers never run at the same time. */
  private async restart({ kinds, controllers }: Project): Promise<void> {
    const { view, stand, guard, options } = this;
    view.show({ controller: 'the controller starts' });
    await this.stopController?.();
    this.stopController = undefined;
    if (this.isOver()) return;
    this.trouble('controller', '', []);
    this.isStale = false;
    const at = new Date().toTimeString().slice(0, 8);
    this.loadedAt = at;
    this.stopController = startController({
      ...{ guard, kinds, controllers, kubeconfig: stand.operatorKubeconfig, config: options.config },
      onStarted: () => {
        view.show({ controller: `the controller runs what was loaded at ${at}` });
      },
      onLine: (text, tone) => {
        if (!this.isOver()) view.report(text, tone);
      },
      onEnd: (how) => {
        if (this.isOver()) return;
        this.stopController = undefined;
        view.show({ controller: 'no controller runs' });
        this.trouble('controller', `The controller has ended: ${how}`, ['The next save starts it again']);
      },
    });
  }

  private trouble(about: (typeof ABOUT)[number], title: string, lines: readonly string[]): void {
    if (lines.length > 0) this.troubles.set(about, { title, lines });
    else if (!this.troubles.delete(about)) return;
    this.view.show({ troubles: ABOUT.flatMap((each) => this.troubles.get(each) ?? []) });
  }
}

/** Reports whether a file is the one that this process writes to, as in `reconstruct dev > dev.txt`. */
function isOwnOutput(file: Stats | undefined): boolean {
  if (!file?.isFile()) return false;
  const outputs = [1, 2].map((descriptor) => fstatSync(descriptor));
  return outputs.some(({ ino, dev }) => ino === file.ino && dev === file.dev);
}
