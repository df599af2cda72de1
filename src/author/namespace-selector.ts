import type { Controller, Watch } from '../contract/controller.js';
import { splitKey } from '../contract/object.js';
import type { Plan } from '../contract/plan.js';
import { keepIdentity } from '../values/projections.js';
import { resourceType } from '../contract/resource.js';

/** Type of the namespaces that a selector chooses. */
export const namespaceType = resourceType({ apiVersion: 'v1', kind: 'Namespace', namespaced: false });

interface SelectingController extends Controller {
  /** Returns the plan of a custom resource that isn't looked after any more. */
  unselected(key: string, now: Date): Plan;
}

/**
 * Limits a controller to the custom resources in namespaces with these labels, if any are given. They are followed: a namespace that gains them
 * wakes its custom resources, and plans for those in any other namespace have no steps, so that their objects stay as they are.
 *
 * @param controller one with a key for each custom resource, that of its namespace and name
 */
export function inNamespaces(controller: SelectingController, selector: string | undefined): Controller {
  if (selector === undefined) return controller;
  const watch: Watch = {
    ...{ type: namespaceType, selector, readOnly: true, keep: keepIdentity, mapsTo: () => [] },
    concerns: ({ metadata: { name } }, cr) => cr.metadata.namespace === name,
  };
  const [first] = controller.watches;
  return {
    ...controller,
    watches: [...controller.watches, watch],
    reconcile: (key, reader, now) => {
      const isSelected = reader.get(namespaceType, splitKey(key).namespace ?? '') !== undefined;
      // What is left of a custom resource that is gone may have outlived its namespace.
      const isGone = first && reader.get(first.type, key) === undefined;
      return isSelected || isGone ? controller.reconcile(key, reader, now) : controller.unselected(key, now);
    },
  };
}
