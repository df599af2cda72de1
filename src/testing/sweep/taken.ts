import { storedVersion } from '../../contract/crd.js';
import { OperatorError } from '../../contract/error.js';
import type { RenderedKind } from '../../contract/kind.js';
import type { AnyObject, CustomResource } from '../../contract/object.js';
import { groupKind } from '../../contract/resource.js';
import { applyDefaults } from '../../synth/defaults.js';
import { render } from '../../synth/render.js';
import { collection } from '../cluster.js';
import { policyFor } from './surroundings.js';
import type { Spec, Stand } from './stand.js';

/** Whether the cluster takes everything that is rendered of a spec; asked by dry runs, so that nothing is made. */
export type IsTaken = (spec: Spec) => Promise<boolean>;

/** Asks once for each object. Of a kind that isn't rendered for each custom resource, everything counts as taken. */
export function isTakenIn(stand: Stand, namespace: string): IsTaken {
  const { rendering } = stand.kind;
  if (!('each' in rendering)) return () => Promise.resolve(true);
  const answers = new Map<string, Promise<boolean>>();
  const isAccepted = (object: AnyObject): Promise<boolean> => {
    const id = JSON.stringify(object);
    const answer = answers.get(id) ?? accepts(stand, object);
    answers.set(id, answer);
    return answer;
  };
  return async (spec) => {
    const objects = rendered(stand, rendering.each, { spec, namespace });
    return objects !== undefined && (await Promise.all(objects.map(isAccepted))).every(Boolean);
  };
}

/** Nothing, where the kind itself refuses it. */
function rendered(
  { kind, context }: Stand,
  each: RenderedKind,
  { spec, namespace }: { readonly spec: Spec; readonly namespace: string },
): AnyObject[] | undefined {
  const { apiVersion, kind: name } = kind.type;
  const cr = { apiVersion, kind: name, metadata: { name: 'taken', namespace }, spec };
  const schema = storedVersion(kind.crd).schema.openAPIV3Schema;
  try {
    return render(each, applyDefaults(cr, schema) as CustomResource, policyFor(kind, context));
  } catch (error) {
    if (error instanceof OperatorError) return undefined;
    throw error;
  }
}

/** What isn't installed is no fault of the spec. */
async function accepts({ cluster, types }: Stand, object: AnyObject): Promise<boolean> {
  const type = types.find((one) => groupKind(one) === groupKind(object));
  if (!type) return true;
  const { namespace, name } = object.metadata;
  const { status } = await cluster.send('PATCH', `${collection(type, namespace)}/${name}`, {
    body: object,
    contentType: 'application/apply-patch+yaml',
    query: { dryRun: 'All', fieldManager: 'taken', force: 'true' },
  });
  return status < 400 || status === 404;
}
