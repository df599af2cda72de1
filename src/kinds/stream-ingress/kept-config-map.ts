import type { AnyObject } from '../../contract/object.js';
import { holdings, isManaged } from './held.js';
import type { Holding } from './held.js';

/** What is kept of a ConfigMap in which a target's ports are listed. */
export interface KeptConfigMap {
  readonly entries: Readonly<Record<string, KeptEntry>>;
  /** Whether anything in it is ours. */
  readonly managed: boolean;
}

export interface KeptEntry extends Holding {
  readonly value: string;
}

export function keepConfigMap(object: AnyObject): KeptConfigMap {
  const data = (object.data ?? {}) as Readonly<Record<string, string>>;
  const held = holdings(object, ['f:data']);
  const entries = Object.entries(data).map(([key, value]) => [key, { value, ...held(`f:${key}`) }] as const);
  return { entries: Object.fromEntries(entries), managed: isManaged(object) };
}
