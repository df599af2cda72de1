import { isDeepStrictEqual } from 'node:util';
import { objectId } from '../../contract/object.js';
import type { Sample } from './project.js';

/** What has to be done in the cluster, so that it has the samples. */
export interface SamplePlan {
  readonly apply: readonly Sample[];
  readonly delete: readonly Sample[];
}

/**
 * Applied is what a file has otherwise than it had, so that what was edited by `kubectl` stays until then; deleted is what
 * has been taken out.
 * @param applied the samples as they were applied last
 * @param wanted the samples as they are in the files
 */
export function planSamples(applied: readonly Sample[], wanted: readonly Sample[]): SamplePlan {
  const before = new Map(applied.map(({ object }) => [objectId(object), object]));
  const ids = new Set(wanted.map(({ object }) => objectId(object)));
  return {
    apply: wanted.filter(({ object }) => !isDeepStrictEqual(before.get(objectId(object)), object)),
    delete: applied.filter(({ object }) => !ids.has(objectId(object))),
  };
}
