import type { CrdVersion } from '../contract/crd.js';
import type { Problem } from './problem.js';
import { showValue } from './problem.js';

const MAX_REPLICAS = 2 ** 31 - 1;

/** The field that the subresource `scale` reads replicas from, as `.spec.replicas`; nothing without a `scale`. */
export function replicasPath({ subresources }: CrdVersion): string | undefined {
  return (subresources?.scale as { readonly specReplicasPath?: string } | undefined)?.specReplicasPath;
}

/** Names what is wrong with replicas that have passed the schema, whose bounds may be wider than those of `scale`. */
export function checkReplicas(value: unknown, fieldPath: string | undefined): Problem[] {
  if (fieldPath === undefined) return [];
  const path = fieldPath.split('.').filter((step) => step !== '');
  const replicas = path.reduce<unknown>(
    (at, step) => (at as Readonly<Record<string, unknown>> | null | undefined)?.[step],
    value,
  );
  if (typeof replicas !== 'number' || (replicas >= 0 && replicas <= MAX_REPLICAS)) return [];
  const message = `${showValue(replicas)} is not a number of replicas`;
  return [{ path, message, remedy: `give a number between 0 and ${MAX_REPLICAS}` }];
}
