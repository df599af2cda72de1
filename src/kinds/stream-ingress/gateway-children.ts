import type { ApplyStep, Reader } from '../../contract/controller.js';
import type { DeleteStep } from '../../contract/delete-step.js';
import { OperatorError } from '../../contract/error.js';
import type { Render, RenderedKind } from '../../contract/kind.js';
import type { AnyObject } from '../../contract/object.js';
import { listenerSetType } from './gateway-port.js';
import { FIELD_MANAGER } from './held.js';
import type { KeptRoute } from './kept-route.js';
import type { Resolution } from './resolve.js';
import type { StreamIngress } from './spec.js';
import { serviceKey, upstreamOf } from './upstream.js';
import type { Kept } from './watches.js';

/** What is to be done with the children of one custom resource. */
export interface ChildPlan {
  readonly apply: readonly ApplyStep[];
  readonly delete: readonly DeleteStep[];
  /** Whether the port is open, or is opened. */
  readonly open: boolean;
  /** Why nothing can be rendered. */
  readonly error?: OperatorError;
}

/**
 * Plans the ListenerSet and the route of a holder: made once the upstream is there, left as they are while it is lost, and
 * deleted where it isn't permitted. A listener that is open stays open also when the upstream is edited to a Service that isn't
 * seen, which may be there and only be late: the route alone moves, or goes where the number of its port isn't known. It isn't
 * left to the former Service, since nobody checks any more whether that is permitted.
 */
export function planChildren(
  cr: StreamIngress,
  { gate, port }: Resolution,
  present: readonly AnyObject[],
  render: (cr: StreamIngress) => readonly AnyObject[],
): ChildPlan {
  if (gate === 'shut') return dropChildren(present);
  const routes = present.filter(({ kind }) => kind !== listenerSetType.kind);
  const leads = leadToUpstream(routes, cr);
  const open =
    leads ||
    present.some(({ kind, metadata }) => kind === listenerSetType.kind && !metadata.deletionTimestamp);
  const left = { ...dropChildren(leads ? [] : routes), open };
  if (gate === 'keep' && (leads || !open || typeof cr.spec.upstream.port === 'string')) return left;
  try {
    const objects = render(port === undefined ? cr : withPort(cr, port));
    return { apply: objects.map((object) => applyStep(cr, object)), delete: [], open: true };
  } catch (error) {
    if (error instanceof OperatorError) return { ...left, error };
    throw error;
  }
}

export function dropChildren(present: readonly AnyObject[]): ChildPlan {
  const left = present.filter(({ metadata }) => !metadata.deletionTimestamp);
  return { apply: [], delete: left.map((object) => ({ object })), open: false };
}

/** Reports whether these routes, as they are, lead to the Service of a custom resource, at whatever port. */
function leadToUpstream(routes: readonly AnyObject[], cr: StreamIngress): boolean {
  const upstream = serviceKey(upstreamOf(cr));
  const leadTo = (routes as Kept<KeptRoute>[]).flatMap(({ kept }) => kept);
  return leadTo.length > 0 && leadTo.every((key) => key === upstream);
}

export function childrenOf(
  { children }: Pick<RenderedKind, 'children'>,
  { metadata }: StreamIngress,
  reader: Reader,
): AnyObject[] {
  return children.flatMap((type) => reader.controlledBy(type, metadata.uid ?? ''));
}

/** Renders a custom resource once for as long as it stays as it is. */
export function rememberingRender(
  render: Render,
  rendering: RenderedKind,
): (cr: StreamIngress) => AnyObject[] {
  const known = new WeakMap<object, { readonly spec: string; readonly objects: AnyObject[] }>();
  return (cr) => {
    const spec = JSON.stringify(cr.spec);
    const before = known.get(cr.metadata);
    if (before?.spec === spec) return before.objects;
    const objects = render(rendering, cr);
    known.set(cr.metadata, { spec, objects });
    return objects;
  };
}

/** A route takes numbers, and the number of a named port is the Service's to say. */
function withPort(cr: StreamIngress, port: number): StreamIngress {
  return { ...cr, spec: { ...cr.spec, upstream: { ...cr.spec.upstream, port } } };
}

function applyStep(cr: StreamIngress, object: AnyObject): ApplyStep {
  const { apiVersion, kind, metadata } = cr;
  const owner = { apiVersion, kind, name: metadata.name, uid: metadata.uid ?? '' };
  return {
    object,
    fieldManager: FIELD_MANAGER,
    owner: { ...owner, controller: true, blockOwnerDeletion: true },
  };
}
