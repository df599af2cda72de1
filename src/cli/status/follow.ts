import { sleep } from '../../engine/clock.js';
import type { Clock } from '../../engine/clock.js';
import type { Api } from '../../engine/api.js';
import type { StatusDocument } from './document.js';
import type { Source } from './source.js';
import { unlessAborted } from './unless-aborted.js';
import { WatchedSource } from './watched-source.js';

/** Changes come in bursts. */
const QUIET_MILLISECONDS = 100;
/** Ages and leases grow old although nothing happens. */
const TICK_MILLISECONDS = 5_000;

export interface FollowProps {
  readonly api: Api;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly collect: (source: Source) => Promise<StatusDocument>;
  /** Told of each new state. @returns true once it is enough */
  readonly onDocument: (document: StatusDocument) => boolean | Promise<boolean>;
  /** Told why a later look than the first fails, before it is tried again. @default - nobody is */
  readonly onFailed?: (error: unknown) => void;
}

/**
 * Collects anew whenever something has changed, by watches, until the signal aborts or it is enough.
 * @throws what `collect` throws at first; later, what can't be found out for the moment is tried again
 */
export async function follow(props: FollowProps): Promise<void> {
  const { api, clock, signal, collect, onDocument, onFailed } = props;
  const watching = new AbortController();
  const stop = (): void => {
    watching.abort();
  };
  signal.addEventListener('abort', stop);
  const isOver = (): boolean => signal.aborted;
  const bell = new Bell();
  const onChange = (): void => {
    bell.ring();
  };
  const source = new WatchedSource({ api, clock, signal: watching.signal, onChange });
  try {
    for (let isFirst = true; !isOver(); isFirst = false) {
      // What changes from here on may be missed by this look.
      bell.windUp();
      const document = await unlessAborted(collect(source), signal).catch((error: unknown) => {
        if (isOver()) return undefined;
        if (isFirst) throw error;
        onFailed?.(error);
        return undefined;
      });
      if (isOver()) return;
      if (document && (await onDocument(document))) return;
      await Promise.race([bell.rung(), sleep(clock, TICK_MILLISECONDS, signal)]);
      await sleep(clock, QUIET_MILLISECONDS, signal);
    }
  } finally {
    signal.removeEventListener('abort', stop);
    watching.abort();
  }
}

/** Remembers that it was rung until it is wound up anew. */
class Bell {
  private isRung = false;
  private wake: (() => void) | undefined;

  windUp(): void {
    this.isRung = false;
    this.wake = undefined;
  }

  ring(): void {
    this.isRung = true;
    this.wake?.();
  }

  async rung(): Promise<void> {
    if (this.isRung) return;
    await new Promise<void>((resolve) => {
      this.wake = resolve;
    });
  }
}
