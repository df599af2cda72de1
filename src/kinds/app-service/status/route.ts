import type { ConditionProps, ConditionStatus } from '../../../contract/conditions.js';
import type { AnyObject } from '../../../contract/object.js';
import type { Failure } from '../../../contract/status.js';
import type { Route, RouteParent } from '../spec.js';
import { sentence } from './sentence.js';

/** The part of an HTTPRoute's status that is read. @see https://gateway-api.sigs.k8s.io/reference/spec/#routestatus */
interface RouteStatus {
  readonly parents?: readonly {
    readonly parentRef: RouteParent;
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly reason?: string;
      readonly message?: string;
      readonly observedGeneration?: number;
    }[];
  }[];
}

/** What one Gateway says. */
interface Verdict {
  readonly status: ConditionStatus;
  readonly reason: string;
  readonly message: string;
}

/** The conditions that have to hold; not every Gateway reports the last. */
const ASKED: readonly string[] = ['Accepted', 'ResolvedRefs', 'Programmed'];

/**
 * Whether the Gateways take the route: what they say of the present generation of the HTTPRoute, or why there is no
 * HTTPRoute. One refusal makes it False; a Gateway that hasn't said anything makes it Unknown.
 */
export function routeReady(
  route: Route,
  httpRoute: AnyObject | undefined,
  failures: readonly Failure[],
): ConditionProps {
  const failed = failures.find(({ ref }) => ref?.kind === 'HTTPRoute')?.error;
  if (failed) return { type: 'RouteReady', status: 'False', reason: failed.reason, message: failed.message };
  if (!httpRoute) return unknown('The HTTPRoute has yet to be applied');

  const verdicts = route.parentRefs.map((parent) => verdictOf(parent, httpRoute));
  const tell = (status: ConditionStatus) => {
    const said = verdicts.filter((verdict) => verdict.status === status);
    return said[0] && { reason: said[0].reason, message: sentence(...said.map(({ message }) => message)) };
  };
  const refused = tell('False');
  if (refused) return { type: 'RouteReady', status: 'False', ...refused };
  const open = tell('Unknown');
  if (open) return { type: 'RouteReady', status: 'Unknown', ...open };
  return { type: 'RouteReady', status: 'True', reason: 'Accepted', message: tell('True')?.message ?? '' };
}

/**
 * Where the route leads in: the first full host name and the path. It begins with `http`, since whether a Gateway has
 * a certificate is its own matter, and one that has sends callers on to https as a rule. Nothing where only the
 * Gateway knows the host.
 */
export function routeUrl({ hostnames = [], path = '/' }: Route): string | undefined {
  const host = hostnames.find((name) => !name.startsWith('*'));
  return host && `http://${host}${path}`;
}

function verdictOf(parent: RouteParent, httpRoute: AnyObject): Verdict {
  const { namespace, generation = 0 } = httpRoute.metadata;
  const name = `Gateway ${parent.namespace ?? namespace ?? ''}/${parent.name}`;
  const conditions = ((httpRoute.status ?? {}) as RouteStatus).parents
    ?.filter(({ parentRef }) => isSame(parentRef, parent, namespace))
    .flatMap((reported) => reported.conditions ?? [])
    .filter(
      ({ type, observedGeneration = generation }) => ASKED.includes(type) && observedGeneration >= generation,
    );
  const refusal = conditions?.find(({ status }) => status === 'False');
  if (refusal) return verdict('False', refusal.reason ?? refusal.type, `${name}: ${refusal.message ?? ''}`);
  const accepted = conditions?.some(({ type, status }) => type === 'Accepted' && status === 'True');
  const open = conditions?.find(({ status }) => status !== 'True');
  if (accepted && !open) return verdict('True', 'Accepted', `${name} has accepted the route`);
  return verdict('Unknown', open?.reason ?? 'Pending', `${name} has yet to accept the route`);
}

function isSame(reported: RouteParent, wanted: RouteParent, namespace: string | undefined): boolean {
  return (
    reported.name === wanted.name &&
    (reported.namespace ?? namespace) === (wanted.namespace ?? namespace) &&
    reported.sectionName === wanted.sectionName
  );
}

function verdict(status: ConditionStatus, reason: string, message: string): Verdict {
  return { status, reason, message };
}

function unknown(message: string): ConditionProps {
  return { type: 'RouteReady', status: 'Unknown', reason: 'Pending', message };
}
