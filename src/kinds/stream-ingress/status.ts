import { dateConditions, standardConditions } from '../../author/status.js';
import type { ConditionProps, Readiness } from '../../contract/conditions.js';
import type { Explanation } from '../../contract/plan.js';
import { refOf } from '../../contract/object.js';
import { condition } from '../common.js';
import type { Refusal } from './claims.js';
import { portText, upstreamText, type StreamIngress, type StreamIngressStatus } from './spec.js';

/** The condition of that name. */
export interface Programmed extends ConditionProps {
  /** Whether it stays False until something is changed. @default - by its reason */
  readonly stalls?: boolean;
}

export function programmedCondition(
  status: ConditionProps['status'],
  reason: string,
  message: string,
): Programmed {
  return { type: 'Programmed', status, reason, message };
}

/** Findings on one custom resource. */
export interface Findings {
  /** The name of its target. @default - there is none */
  readonly target?: string;
  readonly refusal?: Refusal;
  /** Absent where there is no target. */
  readonly resolution?: Omit<ConditionProps, 'type'>;
  /** State of the port; of one that isn't accepted, only while the port has yet to be closed. */
  readonly programmed?: Programmed;
  /** @default - none */
  readonly addresses?: readonly string[];
}

/** Returns the status as it is written. */
export function statusOf(cr: StreamIngress, findings: Findings, now: Date): StreamIngressStatus {
  const { target, refusal, resolution, programmed, addresses = [] } = findings;
  const { generation } = cr.metadata;
  const accepted = { reason: 'Accepted', message: `${portText(cr)} is held by this object` };
  const closed =
    refusal?.reason === 'PortReserved'
      ? programmedCondition('False', 'PortUnavailable', 'The port is reserved, so it is not opened')
      : programmedCondition('False', 'Pending', 'The port is opened once it is accepted');
  const conditions: ConditionProps[] = [
    ...standardConditions(readinessOf(cr, findings)),
    condition('Accepted', refusal ? 'False' : 'True', refusal ?? accepted),
    ...(resolution ? [condition('ResolvedRefs', resolution.status, resolution)] : []),
    condition('Programmed', (programmed ?? closed).status, programmed ?? closed),
  ];
  return {
    ...(generation !== undefined && { observedGeneration: generation }),
    ...(target !== undefined && { target }),
    upstream: upstreamText(cr),
    ...(programmed?.status === 'True' && addresses.length > 0 && { addresses }),
    conditions: dateConditions(conditions, cr.status?.conditions ?? [], now, generation),
  };
}

/** Derives Ready from all three; the first that doesn't hold says why not. */
export function readinessOf(cr: StreamIngress, { refusal, resolution, programmed }: Findings): Readiness {
  if (refusal) return { phase: 'stalled', ...refusal };
  if (resolution && resolution.status !== 'True') {
    const { reason, message } = resolution;
    return { phase: STALLING.has(reason) ? 'stalled' : 'failing', reason, message };
  }
  if (!programmed || programmed.status === 'Unknown') {
    const message = programmed?.message ?? 'Nothing is known yet';
    return { phase: 'progressing', reason: 'Pending', message };
  }
  const { status, reason, message, stalls = STALLING.has(reason) } = programmed;
  if (status === 'False') return { phase: stalls ? 'stalled' : 'failing', reason, message };
  const open = `${portText(cr)} is open and leads to ${upstreamText(cr)}`;
  return { phase: 'ready', reason: 'Programmed', message: open };
}

/** Reasons that last until something is changed; the others may heal by themselves. */
const STALLING: ReadonlySet<string> = new Set([
  ...['RefNotPermitted', 'PortUnavailable', 'TargetNotConfigured', 'TargetRefused', 'TooManyListeners'],
  // Said by the controller of a Gateway, which also has PortUnavailable and TooManyListeners.
  ...['NotAllowed', 'NotAllowedByListeners', 'HostnameConflict', 'ListenerConflict', 'ProtocolConflict'],
  ...['InvalidRouteKinds', 'UnsupportedProtocol', 'UnsupportedValue'],
]);

/** Explains why a custom resource would not get what it asks for; returns nothing where it would. */
export function explanationsOf(cr: StreamIngress, findings: Findings): Explanation[] {
  const { phase, reason, message } = readinessOf(cr, findings);
  if (phase !== 'stalled' && phase !== 'failing') return [];
  return [{ of: refOf(cr), summary: `would not be Ready: ${reason}: ${message}`, differs: false }];
}
