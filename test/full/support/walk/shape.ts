import { storedVersion } from '../../../../src/contract/crd.js';
import type { StructuralSchema } from '../../../../src/contract/crd.js';
import { appService } from '../../../../src/kinds/app-service/kind.js';
import { leavesOf } from '../../../../src/testing/walk.js';

export { schemaAt, valuesAt } from '../../../../src/testing/walk.js';
export type { Path, Spec } from '../../../../src/testing/walk.js';

export const specSchema: StructuralSchema = storedVersion(appService.crd).schema.openAPIV3Schema.properties!
  .spec!;

/** Every field that holds a value. */
export const leaves = leavesOf(specSchema);
