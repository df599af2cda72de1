import { fstatSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { messageOf } from '../../contract/error.js';
import { describeRef } from '../../contract/object.js';
import type { Clock, Timer } from '../../engine/clock.js';
import type { StatusDocument } from '../status/document.js';
import { clusterSide } from './cluster-side.js';
import type { ClusterSide } from './cluster-side.js';
import { DevController } from './controller.js';
import type { ControllerLine } from './controller.js';
import { Follower } from './follower.js';
import { hintsFor } from './hints.js';
import { loadProject } from './load.js';
import type { Failure } from './log-line.js';
import type { Project, ProjectOptions } from './project.js';
import type { Guard, Stand } from './stand.js';
import type { Trouble, View } from './view.js';
import { foldersOf, isPassing, isSample, WatchedFiles } from './watched-files.js';

export interface SessionProps {
  readonly options: ProjectOptions;
  readonly view: View;
  readonly clock: Clock;
  readonly guard: Guard;
  /** The cluster, once it is up. */
  readonly stand: Promise<Stand>;
  readonly signal: AbortSignal;
}

/**
 * Keeps a cluster as the files of a project say, and shows it.
 *
 * **Guarantees.** What can't be loaded or applied changes nothing: the controller and the samples that were there go on.
 */
export class Session {
  private readonly troubles: Troubles;
  private readonly warnings: HeldWarnings;
  private readonly files: WatchedFiles;
  private readonly reloads: Reloads;
  private readonly root: string;
  private cluster: ClusterSide | undefined;
  private follower: Follower | undefined;
  private controller: DevController | undefined;
  private loadedAt = '';
  /** Whether what the controller has loaded isn't what is there now. */
  private isStale = false;
  private sources: readonly string[] = [];

  constructor(private readonly props: SessionProps) {
    const { view, clock, options, signal } = props;
    this.troubles = new Troubles(view);
    this.warnings = new HeldWarnings({
      clock,
      tell: (text) => {
        if (!signal.aborted) view.told(text, 'warning');
      },
    });
    this.root = dirname(resolve(options.config ?? 'any'));
    this.reloads = new Reloads({ clock, reload: (files) => this.reload(files) });
    this.files = new WatchedFiles((path) => {
      if (!isOwnOutput(path)) this.reloads.saved(path);
    });
  }

  /** Begins, and goes on until `close`. */
  async begin(): Promise<void> {
    this.watch(this.root, true);
    await this.reloads.begin();
  }

  /** Ends all that it has begun. */
  async close(): Promise<void> {
    this.reloads.stop();
    this.files.close();
    this.follower?.stop();
    this.warnings.clear();
    await this.controller?.kill();
    await this.cluster?.close();
  }

  private async reload(saved: ReadonlySet<string>): Promise<void> {
    const { signal, view } = this.props;
    const counting = [...saved].filter((file) => !isPassing(file));
    if (saved.size > 0 && counting.length === 0) return;
    try {
      const project = await this.load();
      if (signal.aborted) return;
      // Until it is started anew: what comes in between may fail.
      if (!project) {
        this.isStale = true;
        return;
      }
      const sources = [...this.sources, ...project.sources];
      this.isStale ||= saved.size === 0 || !counting.every((file) => isSample(file, sources));
      this.sources = project.sources;
      for (const folder of foldersOf(sources)) this.watch(folder, false);
      await this.bring(project);
    } catch (error) {
      if (!signal.aborted) view.told(`What was saved couldn't be taken up: ${messageOf(error)}`, 'error');
    }
  }

  private async load(): Promise<Project | undefined> {
    const { options, guard, clock, signal } = this.props;
    const result = await loadProject({ ...options, guard, clock, signal, root: this.root });
    if (signal.aborted) return undefined;
    const problems = 'problems' in result ? result.problems : noKinds(result.project);
    const meanwhile = this.controller
      ? `the controller goes on with what was loaded at ${this.loadedAt}`
      : 'no controller runs';
    this.troubles.put('configuration', `The configuration can't be loaded; ${meanwhile}`, problems);
    return 'project' in result && problems.length === 0 ? result.project : undefined;
  }

  private async bring(project: Project): Promise<void> {
    const { kinds, rules, samples } = project;
    const cluster = await this.clusterUp();
    if (!cluster || this.isOver()) return;
    const { refused, changed, left } = await cluster.stand.install(kinds, rules);
    if (this.isOver()) return;
    for (const crd of left) {
      cluster.samples.forget(crd);
      this.props.view.told(leftBehind(crd), 'warning');
    }
    this.troubles.put('crds', 'The cluster keeps the CRD that it has', refused);
    if (this.isStale || !this.controller) await this.restart(cluster, project);
    if ('valid' in samples) {
      const rejected = await cluster.samples.bring(samples.valid, changed, this.props.signal);
      if (this.isOver()) return;
      this.troubles.put('cluster', 'The cluster keeps what it has of these samples', rejected);
    }
    this.props.view.hints(hintsFor(cluster.stand, 'valid' in samples ? samples.valid : []));
    const problems = 'problems' in samples ? samples.problems : [];
    this.troubles.put('samples', 'The samples are not as they have to be; the last good ones stay', problems);
    if (!this.isOver()) this.follower?.follow(kinds);
  }

  private isOver(): boolean {
    return this.props.signal.aborted;
  }

  /** @returns undefined once it is over, or where the sandbox doesn't start: why, is told by who has started it */
  private async clusterUp(): Promise<ClusterSide | undefined> {
    if (this.cluster) return this.cluster;
    const { view, clock } = this.props;
    const stand = await this.props.stand.catch(() => undefined);
    if (!stand) return undefined;
    const cluster = await clusterSide(stand, clock);
    if (this.isOver()) {
      await cluster.close();
      return undefined;
    }
    this.cluster = cluster;
    this.follower = new Follower({
      ...{ api: cluster.api, clock },
      onDocument: (document) => {
        this.warnings.document(document);
        view.document(document);
      },
      onChanges: (changes) => {
        view.changed(changes);
      },
      onTrouble: (lines) => {
        this.troubles.put('look', "The custom resources can't be looked at, which is tried again", lines);
      },
    });
    return cluster;
  }

  /** Two controllers never run at once. */
  private async restart({ stand }: ClusterSide, { kinds }: Project): Promise<void> {
    const { view, guard, clock, options, signal } = this.props;
    view.controller('the controller starts');
    await this.controller?.stop();
    this.controller = undefined;
    this.warnings.clear();
    if (signal.aborted) return;
    this.troubles.put('controller', '', []);
    this.isStale = false;
    const at = new Date(clock.now()).toTimeString().slice(0, 8);
    this.loadedAt = at;
    this.controller = new DevController({
      ...{ guard, clock, kinds, kubeconfig: stand.operatorKubeconfig },
      ...(options.config !== undefined && { config: options.config }),
      onStarted: () => {
        view.controller(`the controller runs what was loaded at ${at}`);
      },
      onLine: (line) => {
        this.printed(line);
      },
      onEnd: (how) => {
        this.ended(how);
      },
    });
  }

  private printed(line: ControllerLine): void {
    const { what, text } = line;
    if (what === 'warn' && line.failure) this.warnings.warned(text, line.failure);
    else this.props.view.told(text, what === 'error' ? 'error' : what === 'warn' ? 'warning' : 'news');
  }

  private ended(how: string): void {
    if (this.props.signal.aborted) return;
    this.controller = undefined;
    this.props.view.controller('no controller runs');
    this.troubles.put('controller', `The controller has ended: ${how}`, ['The next save starts it anew']);
  }

  private watch(folder: string, deep: boolean): void {
    try {
      this.files.follow(folder, deep);
    } catch (error) {
      this.troubles.put('files', 'Not every save will be seen', [`${folder}: ${messageOf(error)}`]);
    }
  }
}

/** A kind that is taken out for a moment mustn't lose its objects. */
function leftBehind(crd: string): string {
  return `The configuration has no kind ${crd} any more: its CRD and its objects stay in this cluster, and nobody looks after them; kubectl delete crd ${crd} removes them`;
}

function noKinds({ kinds }: Project): string[] {
  return kinds.length > 0
    ? []
    : ['It has no kinds: list one that defineKind has made, or name some with --kinds'];
}

/** By then the status is written and seen, if it is. */
const HELD_MILLISECONDS = 2_000;

interface HeldWarningsProps {
  readonly clock: Clock;
  readonly tell: (text: string) => void;
}

interface Held {
  readonly failure: Failure;
  readonly timer: Timer;
}

/**
 * What the controller warns of, told after two seconds, unless the status of the custom resource says it: one mistake is one
 * line. A status that can't be written says nothing, so the warning does.
 */
export class HeldWarnings {
  private readonly held = new Set<Held>();
  private resources: StatusDocument['resources'] = [];

  constructor(private readonly props: HeldWarningsProps) {}

  warned(text: string, failure: Failure): void {
    if (this.isSaid(failure)) return;
    const timer = this.props.clock.setTimer(HELD_MILLISECONDS, () => {
      this.held.delete(held);
      this.props.tell(text);
    });
    const held: Held = { failure, timer };
    this.held.add(held);
  }

  document({ resources }: StatusDocument): void {
    this.resources = resources;
    for (const held of this.held) {
      if (!this.isSaid(held.failure)) continue;
      held.timer.cancel();
      this.held.delete(held);
    }
  }

  /** Of a controller that has ended. */
  clear(): void {
    for (const { timer } of this.held) timer.cancel();
    this.held.clear();
  }

  private isSaid({ of, cause }: Failure): boolean {
    return this.resources.some(
      (resource) => describeRef(resource) === of && resource.verdict.message.includes(cause),
    );
  }
}

/**
 * Whether a file is where this process writes to, as in `reconstruct dev > dev.log`: what is told of a reload would lead to
 * the next one.
 * @param outputs file descriptors
 */
export function isOwnOutput(path: string, outputs: readonly number[] = [1, 2]): boolean {
  const file = statSync(path, { throwIfNoEntry: false });
  if (!file?.isFile()) return false;
  return outputs.some((descriptor) => {
    const output = fstatSync(descriptor);
    return output.ino === file.ino && output.dev === file.dev;
  });
}

/** What can be wrong, in the order in which it is shown. */
const ABOUT = ['configuration', 'crds', 'controller', 'samples', 'cluster', 'look', 'files'] as const;

type About = (typeof ABOUT)[number];

/** Everything that is wrong, each until it is put right. */
class Troubles {
  private readonly all = new Map<About, Trouble>();

  constructor(private readonly view: Pick<View, 'troubles'>) {}

  /** @param lines none where it is right */
  put(about: About, title: string, lines: readonly string[]): void {
    if (lines.length > 0) this.all.set(about, { title, lines });
    else if (!this.all.delete(about)) return;
    this.view.troubles(ABOUT.flatMap((each) => this.all.get(each) ?? []));
  }
}

/** A save is often several writes, and an editor may put a new file in the place of the old one. */
const QUIET_MILLISECONDS = 150;

interface ReloadsProps {
  readonly clock: Clock;
  /**
   * Loads what has been saved. Must not throw.
   * @param files whose content may be another: absolute paths; none at first
   */
  readonly reload: (files: ReadonlySet<string>) => Promise<void>;
}

/**
 * When to load anew.
 *
 * **Guarantees.** Saves that follow each other within 150 ms lead to one reload; two reloads never run at once; after the
 * last save there is a reload that began after it.
 */
export class Reloads {
  private files = new Set<string>();
  private timer: Timer | undefined;
  private isRunning = false;
  private isStopped = false;

  constructor(private readonly props: ReloadsProps) {}

  /** Loads for the first time. Must be called before anything else. */
  async begin(): Promise<void> {
    await this.run();
  }

  /** A file was saved, made or removed. */
  saved(file: string): void {
    this.files.add(file);
    if (!this.isRunning) this.plan();
  }

  /** No further reload begins; one that is under way isn't waited for. */
  stop(): void {
    this.timer?.cancel();
    this.isStopped = true;
  }

  private plan(): void {
    this.timer?.cancel();
    if (this.isStopped) return;
    this.timer = this.props.clock.setTimer(QUIET_MILLISECONDS, () => void this.run());
  }

  private async run(): Promise<void> {
    if (this.isStopped) return;
    const { files } = this;
    this.files = new Set();
    this.isRunning = true;
    await this.props.reload(files);
    this.isRunning = false;
    if (this.files.size > 0) this.plan();
  }
}
