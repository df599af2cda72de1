import { OperatorError } from '../../contract/error.js';
import { describeRef, refOf } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import { installedOperators } from '../../install/installed.js';
import type { InstalledOperator } from '../../install/installed.js';
import type { ClusterClient } from '../cluster-client.js';
import type { Given } from '../diff/compare.js';
import { CliError } from '../exit.js';
import { looksAfter } from '../status/operators.js';

export interface OperatorFinderProps {
  readonly cluster: Pick<ClusterClient, 'find' | 'list'>;
  /** The one place where there may be one. @default - anywhere */
  readonly operatorNamespace?: string;
  readonly warn: (line: string) => void;
}

type Found = readonly InstalledOperator[] | { readonly unseen: string };

/**
 * Who looks after a custom resource; the cluster is asked once. Where nobody may look for operators, one whose status
 * some operator has written is refused: two would write the same objects in turn.
 */
export function operatorFinder(
  props: OperatorFinderProps,
): (given: Given) => Promise<InstalledOperator | undefined> {
  let looking: Promise<Found> | undefined;
  return async ({ input: { kind }, before, after }) => {
    const found = await (looking ??= look(props));
    if ('unseen' in found) {
      if (before && wasLookedAt(before)) throw mayBeAttended(before, found.unseen);
      return undefined;
    }
    const { namespace } = after.metadata;
    const place = { kind, ...(namespace !== undefined && { namespace }) };
    return found.find((operator) => looksAfter(operator, place));
  };
}

async function look({ cluster, operatorNamespace, warn }: OperatorFinderProps): Promise<Found> {
  try {
    const found = await installedOperators(cluster, operatorNamespace);
    if (operatorNamespace !== undefined && found.length === 0)
      warn(`There is no operator in ${operatorNamespace}: what is made of these is applied here`);
    return found;
  } catch (error) {
    if (!(error instanceof OperatorError) || error.reason !== 'Forbidden') throw error;
    warn(
      `Whether an operator is installed can't be seen (${error.message}): none is assumed, but for custom resources ` +
        'whose status one has written; name its namespace with --operator-namespace',
    );
    return { unseen: error.message };
  }
}

/** By the default of its schema, the generation that nobody has looked at yet is -1. */
function wasLookedAt({ status }: AnyObject): boolean {
  const { observedGeneration, conditions } = (status ?? {}) as {
    readonly observedGeneration?: unknown;
    readonly conditions?: unknown;
  };
  const isObserved = typeof observedGeneration === 'number' && observedGeneration > -1;
  return isObserved || (Array.isArray(conditions) && conditions.length > 0);
}

function mayBeAttended(cr: AnyObject, why: string): CliError {
  return new CliError(
    [
      `${describeRef(refOf(cr))}: an operator has written its status, and whether it still looks after it can't be seen ` +
        `(${why}); name the namespace where it is, or was, with --operator-namespace, or apply the custom resource with ` +
        '"kubectl apply", and the operator does the rest',
      'Nothing was written',
    ],
    3,
  );
}
