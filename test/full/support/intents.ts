import type { Kind, Policy } from '../../../src/contract/kind.js';
import { childrenFieldManager } from '../../../src/contract/names.js';
import type { AnyObject, OwnerReference } from '../../../src/contract/object.js';
import { taskOf } from '../../../src/engine/apply-state.js';
import type { StoreReader } from '../../../src/engine/cache.js';
import { render } from '../../../src/synth/render.js';
import type { LiveResource } from './subject.js';

/** An object as the controller applies it: what is rendered, with its hash and its owner. */
export interface Intent {
  readonly manager: string;
  readonly object: AnyObject;
  /** Whether fields are taken from others, which they aren't where an object is shared. */
  readonly force: boolean;
}

/** What a controller would apply for all custom resources of a kind. @param crs as they are in the cluster */
export function intentsOf(kind: Kind, crs: readonly LiveResource[], policy: Policy): Intent[] {
  return renderedOf(kind, crs, policy).map(({ of, object }) => {
    const manager = childrenFieldManager(kind.type.kind);
    const step = { object, fieldManager: manager, ...(of && { owner: ownerReferenceTo(of) }) };
    // It asks the reader for nothing but the store, and that for nothing.
    const reader = { store: () => undefined } as unknown as StoreReader;
    const { intent } = taskOf(step, reader);
    return { manager, object: intent, force: of !== undefined };
  });
}

interface Rendered {
  /** Whom it belongs to. @default - it is shared */
  readonly of?: LiveResource;
  readonly object: AnyObject;
}

function renderedOf({ name, rendering }: Kind, crs: readonly LiveResource[], policy: Policy): Rendered[] {
  if ('each' in rendering)
    return crs.flatMap((of) => render(rendering.each, of, policy).map((object) => ({ of, object })));
  const { manifests, findings = [] } = rendering.together(crs, { render, policy: policy[name] });
  if (findings.some(({ level }) => level === 'error')) throw new Error(JSON.stringify(findings));
  return manifests.flatMap(({ of, objects }) =>
    objects.map((object) => ({ object, ...(of && { of: of as LiveResource }) })),
  );
}

function ownerReferenceTo({ apiVersion, kind, metadata: { name, uid } }: LiveResource): OwnerReference {
  return { apiVersion, kind, name, uid: uid!, controller: true, blockOwnerDeletion: true };
}
