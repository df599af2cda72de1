import { OperatorError } from '../contract/error.js';
import { objectId } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import type { Clock } from './clock.js';

/** The API server tells of a change to a Service first, and releases its node ports afterwards. */
const RELEASE_MILLISECONDS = 10_000;

/** The part of a Service, rendered or as kept, that is read here. */
interface Exposed {
  readonly spec?: { readonly ports?: unknown };
}

/**
 * How often each node port has become free: one is taken by a Service that may be anybody's, so whoever was refused
 * one for that reason has no object to wait for.
 *
 * **Caveats.** Only Services that are watched, and of whose ports something is kept, are seen to go.
 */
export class NodePorts {
  private readonly freed = new Map<number, { readonly times: number; readonly last: number }>();

  constructor(private readonly clock: Clock) {}

  /** To be told of each change of an object. */
  changed(before: AnyObject | undefined, after: AnyObject | undefined): void {
    for (const port of givenUp(before, after))
      this.freed.set(port, { times: this.timesOf(port) + 1, last: this.clock.monotonic() });
  }

  /** Grows when one of the node ports that the object asks for becomes free. */
  timesFreed(object: AnyObject): number {
    return nodePortsOf(object).reduce((sum, port) => sum + this.timesOf(port), 0);
  }

  /** A refusal of the object in its true light: one of a node port that is just being released passes by itself. */
  judged(failure: OperatorError, object: AnyObject): OperatorError {
    if (failure.reason !== 'NodePortConflict' || !this.isBeingReleased(object)) return failure;
    const { reason, message, cause } = failure;
    return new OperatorError({ reason, message, cause, retry: 'backoff' });
  }

  private isBeingReleased(object: AnyObject): boolean {
    const since = this.clock.monotonic() - RELEASE_MILLISECONDS;
    return nodePortsOf(object).some((port) => (this.freed.get(port)?.last ?? -Infinity) > since);
  }

  private timesOf(port: number): number {
    return this.freed.get(port)?.times ?? 0;
  }
}

/** What an object that couldn't be applied waits for: that it changes itself, and the node ports that it asks for. */
export function waitsFor(object: AnyObject): string[] {
  return [objectId(object), ...nodePortsOf(object).map(idOf)];
}

/** What objects may wait for, and a change has set free. */
export function freedIds(before: AnyObject | undefined, after: AnyObject | undefined): string[] {
  return givenUp(before, after).map(idOf);
}

function givenUp(before: AnyObject | undefined, after: AnyObject | undefined): number[] {
  const had = nodePortsOf(before);
  if (had.length === 0) return had;
  const has = new Set(nodePortsOf(after));
  return had.filter((port) => !has.has(port));
}

/** Those that a Service asks for, or has. */
export function nodePortsOf(object: AnyObject | undefined): number[] {
  if (object?.kind !== 'Service' || object.apiVersion !== 'v1') return [];
  const ports = (object as Exposed).spec?.ports;
  // What a kind keeps of it may be anything.
  if (!Array.isArray(ports)) return [];
  return (ports as readonly { readonly nodePort?: number }[]).flatMap(({ nodePort }) => nodePort || []);
}

function idOf(port: number): string {
  return `node port ${port}`;
}
