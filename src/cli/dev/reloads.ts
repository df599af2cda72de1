import type { Clock, Timer } from '../../engine/clock.js';

/** A save is often several writes, and an editor may put a new file in the place of the old one. */
const QUIET_MILLISECONDS = 150;

export interface ReloadsProps {
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
