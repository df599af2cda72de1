import type { ChangeSet } from '../../contract/change.js';
import type { ApplyStep } from '../../contract/controller.js';
import type { AnyObject } from '../../contract/object.js';
import { withoutConflicts } from './conflicts.js';
import type { Entry, EntryPort } from './entry.js';
import { FIELD_MANAGER } from './held.js';
import { portKey } from './kept-service.js';
import type { SharedState } from './openings.js';
import type { NginxTarget } from './targets.js';
import { sharedWrites } from './writes.js';

/**
 * What is applied to the shared objects of a target. Where somebody else has got a key or port since it was looked at,
 * that alone is left out and the rest is applied. A port whose entry couldn't be written isn't opened; an entry goes
 * also where its port couldn't be closed, since a port with nothing behind it only refuses connections.
 */
export function sharedSteps(target: NginxTarget, entries: readonly Entry[], state: SharedState): ApplyStep[] {
  return sharedWrites(target, entries, state).map((object) =>
    object.kind === 'Service'
      ? step(object, (changes) => behindEntries(target, object, state, changes))
      : step(object),
  );
}

function step(object: AnyObject, revise: (changes: ChangeSet) => AnyObject = () => object): ApplyStep {
  let intent = object;
  return {
    object,
    fieldManager: FIELD_MANAGER,
    ...(object.kind === 'Service' && { mustExist: true }),
    revise: (changes) => (intent = revise(changes)),
    onConflict: (conflicts) =>
      withoutConflicts(
        intent,
        conflicts.map(({ field }) => field),
      ),
  };
}

/** The Service with those ports alone whose entries were written: a port is opened behind its entry. */
function behindEntries(
  target: NginxTarget,
  object: AnyObject,
  state: SharedState,
  changes: ChangeSet,
): AnyObject {
  const lost = changes.flatMap(({ ref, conflicts = [] }) => {
    const protocol = ref.name === target.tcpConfigMap ? 'TCP' : 'UDP';
    return conflicts.map(({ field }) => `${field.replace('.data.', '')}/${protocol}`);
  });
  const anyFailed = failed(changes, 'ConfigMap');
  return withPorts(object, (port) => {
    const key = portKey(port.port, port.protocol);
    return anyFailed ? (state.service?.open[key]?.ours ?? false) : !lost.includes(key);
  });
}

function withPorts({ spec, ...rest }: AnyObject, wanted: (port: EntryPort) => boolean): AnyObject {
  const { ports = [] } = (spec ?? {}) as { readonly ports?: readonly EntryPort[] };
  const left = ports.filter(wanted);
  return left.length === 0 ? rest : { ...rest, spec: { ports: left } };
}

function failed(changes: ChangeSet, kind: string): boolean {
  return changes.some(({ ref, action }) => ref.kind === kind && action === 'failed');
}
