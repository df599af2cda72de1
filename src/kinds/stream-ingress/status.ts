import { dateConditions, standardConditions } from '../../contract/conditions.js';
import type { ConditionProps, Readiness } from '../../contract/conditions.js';
import type { EventProps, Explanation } from '../../contract/controller.js';
import { refOf } from '../../contract/object.js';
import type { Refusal } from './claims.js';
import { describeUpstream, portText, upstreamOf } from './spec.js';
import type { StreamIngress, StreamIngressStatus } from './spec.js';

/** The condition of that name. */
export interface Programmed extends ConditionProps {
  /** It stays False until somebody changes something. @default - as its reason tells */
  readonly stalls?: boolean;
}

export function programmedCondition(
  status: ConditionProps['status'],
  reason: string,
  message: string,
): Programmed {
  return { type: 'Programmed', status, reason, message };
}

/** All that is known of one custom resource. */
export interface Findings {
  /** The name of its target. @default - there is none */
  readonly target?: string;
  readonly refusal?: Refusal;
  /** Absent where there is no target. */
  readonly resolution?: Pick<ConditionProps, 'status' | 'reason' | 'message'>;
  /** Where it isn't accepted, only while its port has yet to be closed. */
  readonly programmed?: Programmed;
  /** Where it is reached. */
  readonly addresses: readonly string[];
}

/** The status as it is written. */
export function statusOf(cr: StreamIngress, findings: Findings, now: Date): StreamIngressStatus {
  const { generation } = cr.metadata;
  const conditions = [...standardConditions(readinessOf(cr, findings)), ...ownConditions(cr, findings)];
  const open = findings.programmed?.status === 'True' && findings.addresses.length > 0;
  return {
    ...(generation !== undefined && { observedGeneration: generation }),
    ...(findings.target !== undefined && { target: findings.target }),
    upstream: describeUpstream(upstreamOf(cr)),
    ...(open && { addresses: findings.addresses }),
    conditions: dateConditions(conditions, cr.status?.conditions ?? [], now, generation),
  };
}

/** One Warning when a custom resource comes to need somebody's hand, and none while it stays the same. */
export function stalledEvent(cr: StreamIngress, findings: Findings): EventProps | undefined {
  const { phase, reason, message } = readinessOf(cr, findings);
  if (phase !== 'stalled') return undefined;
  const told = cr.status?.conditions?.find(({ type }) => type === 'Stalled');
  if (told?.status === 'True' && told.message === message) return undefined;
  return { type: 'Warning', reason, action: 'Reconcile', note: message };
}

/** Ready is what all three say; the first that doesn't hold tells why not. */
function readinessOf(cr: StreamIngress, findings: Findings): Readiness {
  const { refusal, resolution, programmed } = findings;
  if (refusal) return { phase: 'stalled', ...refusal };
  if (resolution && resolution.status !== 'True') {
    const { reason, message } = resolution;
    return { phase: STALLING.has(reason) ? 'stalled' : 'failing', reason, message };
  }
  if (!programmed || programmed.status === 'Unknown') {
    return {
      phase: 'progressing',
      reason: 'Pending',
      message: programmed?.message ?? 'Nothing is known yet',
    };
  }
  const { status, reason, message, stalls = STALLING.has(reason) } = programmed;
  if (status === 'False') return { phase: stalls ? 'stalled' : 'failing', reason, message };
  const leadsTo = describeUpstream(upstreamOf(cr));
  return { phase: 'ready', reason: 'Programmed', message: `${portText(cr)} is open and leads to ${leadsTo}` };
}

/** What lasts until somebody changes something; the others may heal by themselves. */
const STALLING: ReadonlySet<string> = new Set([
  'RefNotPermitted',
  'PortUnavailable',
  'TargetNotConfigured',
  'TooManyListeners',
  // Said by the controller of a Gateway, which also has PortUnavailable and TooManyListeners.
  'NotAllowed',
  'NotAllowedByListeners',
  'HostnameConflict',
  'ListenerConflict',
  'ProtocolConflict',
  'InvalidRouteKinds',
  'UnsupportedProtocol',
  'UnsupportedValue',
]);

function ownConditions(cr: StreamIngress, findings: Findings): ConditionProps[] {
  const { refusal, resolution, programmed } = findings;
  const accepted: ConditionProps = refusal
    ? { type: 'Accepted', status: 'False', ...refusal }
    : {
        type: 'Accepted',
        status: 'True',
        reason: 'Accepted',
        message: `${portText(cr)} is held by this object`,
      };
  return [
    accepted,
    ...(resolution ? [{ type: 'ResolvedRefs', ...pick(resolution) }] : []),
    programmed ? { type: 'Programmed', ...pick(programmed) } : notProgrammed(refusal),
  ];
}

function pick({ status, reason, message }: Pick<ConditionProps, 'status' | 'reason' | 'message'>) {
  return { status, reason, message };
}

function notProgrammed(refusal: Refusal | undefined): ConditionProps {
  const [reason, message] =
    refusal?.reason === 'PortReserved'
      ? ['PortUnavailable', 'The port is reserved, so it is not opened']
      : ['Pending', 'The port is opened once it is accepted'];
  return programmedCondition('False', reason, message);
}

/** Why a custom resource would not get what it asks for; nothing, where it would. */
export function explanationsOf(cr: StreamIngress, findings: Findings): Explanation[] {
  const { phase, reason, message } = readinessOf(cr, findings);
  if (phase !== 'stalled' && phase !== 'failing') return [];
  return [{ of: refOf(cr), summary: `would not be Ready: ${reason}: ${message}`, differs: false }];
}
