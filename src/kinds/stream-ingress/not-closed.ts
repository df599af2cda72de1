import { entryOf } from './entry.js';
import type { Entry } from './entry.js';
import { entryIn, portIn } from './openings.js';
import type { SharedState } from './openings.js';
import type { StreamIngress } from './spec.js';
import { configMapName } from './targets.js';
import type { NginxTarget } from './targets.js';

/**
 * What is still there of a port that isn't to be open for a custom resource, for people; undefined where nothing of
 * ours is, or where the port is opened for another one.
 * @param entries what is to be open
 */
export function notClosed(
  target: NginxTarget,
  cr: StreamIngress,
  entries: readonly Entry[],
  state: SharedState,
): string | undefined {
  const entry = entryOf(cr);
  const { listen, protocol } = entry;
  const key = entryIn(entry, state)?.ours
    ? `key ${listen} of ConfigMap ${target.namespace}/${configMapName(target, protocol)}`
    : undefined;
  const port = portIn(entry, state)?.ours
    ? `port ${listen}/${protocol} of Service ${target.namespace}/${target.service}`
    : undefined;
  const left = leftText(key, port);
  if (left === undefined) return undefined;
  const isAnothers = entries.some((other) => other.listen === listen && other.protocol === protocol);
  return isAnothers ? undefined : `The port has yet to be closed: ${left}`;
}

function leftText(key: string | undefined, port: string | undefined): string | undefined {
  if (key !== undefined)
    return port === undefined ? `${key} is still there` : `${key} and ${port} are still there`;
  return port === undefined ? undefined : `${port} is still there, with nothing behind it`;
}
