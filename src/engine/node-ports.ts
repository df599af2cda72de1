import { objectId } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';

/** The part of a Service, rendered or as kept, that is read here. */
interface Exposed {
  readonly spec?: { readonly ports?: readonly { readonly nodePort?: number }[] };
}

/**
 * How often each node port has become free: one is taken by a Service that may be anybody's, so whoever was refused
 * one for that reason has no object to wait for.
 *
 * **Caveats.** Only Services that are watched, and of whose ports something is kept, are seen to go.
 */
export class NodePorts {
  private readonly times = new Map<number, number>();

  /** To be told of each change of an object. */
  changed(before: AnyObject | undefined, after: AnyObject | undefined): void {
    for (const port of freed(before, after)) this.times.set(port, this.timesOf(port) + 1);
  }

  /** Grows when one of the node ports that the object asks for becomes free. */
  timesFreed(object: AnyObject): number {
    return nodePortsOf(object).reduce((sum, port) => sum + this.timesOf(port), 0);
  }

  private timesOf(port: number): number {
    return this.times.get(port) ?? 0;
  }
}

/** What an object that couldn't be applied waits for: that it changes itself, and the node ports that it asks for. */
export function waitsFor(object: AnyObject): string[] {
  return [objectId(object), ...nodePortsOf(object).map(idOf)];
}

/** What objects may wait for, and a change has set free. */
export function freedIds(before: AnyObject | undefined, after: AnyObject | undefined): string[] {
  return freed(before, after).map(idOf);
}

function freed(before: AnyObject | undefined, after: AnyObject | undefined): number[] {
  const had = nodePortsOf(before);
  if (had.length === 0) return had;
  const has = new Set(nodePortsOf(after));
  return had.filter((port) => !has.has(port));
}

function nodePortsOf(object: AnyObject | undefined): number[] {
  if (object?.kind !== 'Service') return [];
  const { ports = [] } = (object as Exposed).spec ?? {};
  return ports.flatMap(({ nodePort }) => nodePort || []);
}

function idOf(port: number): string {
  return `node port ${port}`;
}
