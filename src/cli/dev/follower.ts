import { messageOf } from '../../contract/error.js';
import { controllerOf } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import { groupKind } from '../../contract/resource.js';
import type { Api, Scope } from '../../engine/api.js';
import { sleep } from '../../engine/clock.js';
import type { Clock } from '../../engine/clock.js';
import { collect } from '../status/collect.js';
import type { StatusDocument } from '../status/document.js';
import { follow } from '../status/follow.js';
import type { Source } from '../status/source.js';
import type { SeenKind } from '../status/targets.js';
import { changesBetween, objectsById } from './changes.js';
import type { Change, Objects } from './changes.js';

export interface FollowerProps {
  readonly api: Api;
  readonly clock: Clock;
  readonly onDocument: (document: StatusDocument) => void;
  /** What has happened since the look before. */
  readonly onChanges: (changes: readonly Change[]) => void;
  /** Told with each look. @param lines why they can't be looked at; none where they can */
  readonly onTrouble: (lines: readonly string[]) => void;
}

/** Also what isn't served yet is soon. */
const PAUSE_MILLISECONDS = 2_000;

/** Looks at custom resources and what is made of them, whenever something has changed, and never gives up. */
export class Follower {
  private kinds = '';
  private known: Objects = new Map();
  private stopping: AbortController | undefined;

  constructor(private readonly props: FollowerProps) {}

  /** Looks at these kinds from now on; nothing happens where they are the same as before. */
  follow(kinds: readonly SeenKind[]): void {
    const id = JSON.stringify(kinds);
    if (id === this.kinds) return;
    this.stop();
    this.kinds = id;
    const stopping = new AbortController();
    this.stopping = stopping;
    void this.run(kinds, stopping.signal);
  }

  stop(): void {
    this.stopping?.abort();
    this.kinds = '';
  }

  private async run(kinds: readonly SeenKind[], signal: AbortSignal): Promise<void> {
    const isOver = (): boolean => signal.aborted;
    while (!isOver()) {
      try {
        await this.look(kinds, signal);
      } catch (error) {
        if (isOver()) return;
        this.failed(error);
      }
      await sleep(this.props.clock, PAUSE_MILLISECONDS, signal);
    }
  }

  /** Until the signal aborts. @throws why the first look fails */
  private async look(kinds: readonly SeenKind[], signal: AbortSignal): Promise<void> {
    const { api, clock } = this.props;
    const targets = kinds.map((kind) => ({ kind }));
    let tap: Tap | undefined;
    await follow({
      ...{ api, clock, signal },
      collect: async (source) => {
        tap = new Tap(source);
        return collect({ targets, source: tap, now: () => new Date(), operators: false });
      },
      onDocument: (document) => {
        if (tap) this.looked(document, tap);
        return false;
      },
      onFailed: (error) => {
        this.failed(error);
      },
    });
  }

  private failed(error: unknown): void {
    this.props.onTrouble([messageOf(error)]);
  }

  /** Changes come first: what has changed is why it fares as it does. */
  private looked(document: StatusDocument, { objects: seen, unlisted }: Tap): void {
    this.props.onTrouble([]);
    const crs = new Set(document.resources.map(({ uid }) => uid));
    // It may be there all the same.
    const unseen = [...this.known.values()].filter((object) => unlisted.has(groupKind(object)));
    const objects = objectsById(
      [...unseen, ...seen].filter(
        (object) => crs.has(object.metadata.uid ?? '') || crs.has(controllerOf(object)?.uid ?? ''),
      ),
    );
    const changes = changesBetween(this.known, objects);
    this.known = objects;
    if (changes.length > 0) this.props.onChanges(changes);
    this.props.onDocument(document);
  }
}

/** Remembers what has been listed, and what couldn't be, by group and kind. */
class Tap implements Source {
  readonly objects: AnyObject[] = [];
  readonly unlisted = new Set<string>();

  constructor(private readonly source: Source) {}

  async list(scope: Scope): Promise<readonly AnyObject[]> {
    try {
      const found = await this.source.list(scope);
      this.objects.push(...found);
      return found;
    } catch (error) {
      this.unlisted.add(groupKind(scope.type));
      throw error;
    }
  }
}
