import type { ConditionProps, ConditionStatus } from '../../contract/conditions.js';
import { entryOf, servicePort } from './entry.js';
import type { Entry } from './entry.js';
import type { KeptArguments } from './kept-arguments.js';
import type { KeptAddress } from './kept-service.js';
import { notClosed } from './not-closed.js';
import { entryIn, portIn } from './openings.js';
import type { Openings, SharedState } from './openings.js';
import type { StreamIngress } from './spec.js';
import { configMapName } from './targets.js';
import type { NginxTarget } from './targets.js';

/** What is read back from a target. */
export interface ReadBack {
  readonly state: SharedState;
  readonly openings: Openings;
  /** Of its controller, where that is looked at; null where it isn't there. */
  readonly controller?: KeptArguments | null;
}

/** Whether the target has the port: read back from its objects, never taken from what was sent. */
export function programmed(target: NginxTarget, cr: StreamIngress, readBack: ReadBack): ConditionProps {
  const { state, openings } = readBack;
  const obstacle = openings.obstacles.get(cr);
  const left = openings.open.has(cr) ? undefined : stillOpen(target, cr, readBack);
  if (left && obstacle?.reason !== 'PortUnavailable') return left;
  if (obstacle) return condition('False', obstacle.reason, obstacle.message);
  const entry = entryOf(cr);
  if (!openings.open.has(cr))
    return condition('False', 'Pending', 'The port is opened once the upstream is there');
  const misled = wrongArguments(target, entry, readBack);
  if (misled) return condition('False', 'TargetNotConfigured', misled);
  if (!isWritten(entry, state)) return condition('Unknown', 'Pending', 'The port has yet to be opened');
  const refused = loadBalancerError(entry, state);
  if (refused) return condition('False', 'LoadBalancerPortsError', refused);
  const message = `Service ${target.namespace}/${target.service} has port ${entry.listen}/${entry.protocol}`;
  return condition('True', 'Programmed', message);
}

/** Where something is still there of a port that isn't to be open; @see notClosed */
export function stillOpen(
  target: NginxTarget,
  cr: StreamIngress,
  { openings, state }: ReadBack,
): ConditionProps | undefined {
  const message = notClosed(target, cr, openings.entries, state);
  return message === undefined ? undefined : condition('False', 'NotClosed', message);
}

/** `address:port` for each address of the target's Service. */
export function addressesOf(cr: StreamIngress, { service }: SharedState): string[] {
  return (service?.addresses ?? []).slice(0, 16).map(({ address }) => {
    const host = address.includes(':') ? `[${address}]` : address;
    return `${host}:${cr.spec.listen}`;
  });
}

/** Whose they are was asked before. */
function isWritten(entry: Entry, state: SharedState): boolean {
  const inMap = entryIn(entry, state);
  const inService = portIn(entry, state);
  const { name, targetPort } = servicePort(entry);
  return inMap?.value === entry.value && inService?.name === name && inService.targetPort === targetPort;
}

function wrongArguments(
  target: NginxTarget,
  { protocol }: Entry,
  { controller }: ReadBack,
): string | undefined {
  if (!target.controller || controller === undefined) return undefined;
  const workload = `${target.controller.kind} ${target.namespace}/${target.controller.name}`;
  const map = `${target.namespace}/${configMapName(target, protocol)}`;
  if (!controller) return `${workload}, the controller of the target ${target.name}, isn't there`;
  const read = controller[protocol];
  if (read === map) return undefined;
  const flag = `--${protocol.toLowerCase()}-services-configmap`;
  const found = read === undefined ? `is not told to read any` : `reads ${read}`;
  return `the port is written to ConfigMap ${map}, and ${workload} ${found}; set its argument ${flag}=${map}`;
}

/** What the cloud says of the port, or of the whole Service. */
function loadBalancerError({ listen, protocol }: Entry, { service }: SharedState): string | undefined {
  const ofPort = service?.addresses
    .flatMap(({ errors }: KeptAddress) => errors)
    .find((error) => error.port === listen && error.protocol === protocol);
  if (ofPort) return `the load balancer doesn't open port ${listen}/${protocol}: ${ofPort.error}`;
  return service?.portsError === undefined
    ? undefined
    : `the load balancer couldn't take the ports of the Service: ${service.portsError}`;
}

function condition(status: ConditionStatus, reason: string, message: string): ConditionProps {
  return { type: 'Programmed', status, reason, message };
}
