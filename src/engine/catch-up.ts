import type { Clock, Timer } from './clock.js';
import type { Store } from './store.js';

/**
 * What a watch has missed since the version that it goes on from is sent right after the answer, from the memory of
 * the API server, so after this it has arrived. Until then each object that isn't known costs a request to make sure,
 * which is little for a second; waiting for the next bookmark would take a minute.
 */
const CATCH_UP_MILLISECONDS = 1_000;

export interface CatchUpProps {
  readonly store: Store;
  readonly clock: Clock;
  readonly namespace: string | undefined;
}

/** Tells a store whether what it doesn't know isn't there: while a watch is open, and has brought what was missed. */
export class CatchUp {
  private open = false;
  private timer: Timer | undefined;

  constructor(private readonly props: CatchUpProps) {}

  /** A watch is open that goes on from an older version. */
  opened(): void {
    this.open = true;
    this.timer = this.props.clock.setTimer(CATCH_UP_MILLISECONDS, () => {
      this.done();
    });
  }

  /** A watch is open that begins with all objects. */
  openedWithList(): void {
    this.open = true;
  }

  /** A bookmark, or the end of a list: the server has said that this is all. */
  done(): void {
    if (!this.open) return;
    this.timer?.cancel();
    this.timer = undefined;
    this.props.store.setFollowed(this.props.namespace, true);
  }

  /** The watch has ended. */
  ended(): void {
    this.open = false;
    this.timer?.cancel();
    this.timer = undefined;
    this.props.store.setFollowed(this.props.namespace, false);
  }
}
