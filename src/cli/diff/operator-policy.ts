import { OperatorError } from '../../contract/error.js';
import type { Policy } from '../../contract/kind.js';
import type { Cluster } from '../../install/cluster.js';
import { policyOf } from '../../install/installed.js';
import type { InstalledOperator } from '../../install/installed.js';
import { CliError } from '../exit.js';

export interface OperatorPolicyProps {
  readonly cluster: Pick<Cluster, 'find'>;
  /** @throws CliError where the text is no policy */
  readonly parse: (name: string, text: string) => Promise<Policy>;
  readonly warn: (line: string) => void;
  /** Told by which policy is judged. */
  readonly note: (line: string) => void;
}

/** The policy of an operator as its ConfigMap has it now, an empty one where it has none; nothing where it can't be read. */
export type PolicyOf = (operator: InstalledOperator) => Promise<Policy | undefined>;

/**
 * Reads the policies of operators, each once. One that can't be read is warned of.
 *
 * **Caveats.** An operator takes a change up within a minute or so, and some of it at its next start.
 *
 * **Errors.** A CliError with exit code 3 where it isn't right: the operator then goes on by the one before, which
 * nobody else knows.
 */
export function operatorPolicy(props: OperatorPolicyProps): PolicyOf {
  const read = new Map<string, Promise<Policy | undefined>>();
  return (operator) => {
    const known = read.get(operator.namespace) ?? readPolicy(operator, props);
    read.set(operator.namespace, known);
    return known;
  };
}

async function readPolicy(
  operator: InstalledOperator,
  { cluster, parse, warn, note }: OperatorPolicyProps,
): Promise<Policy | undefined> {
  try {
    const stored = await policyOf(cluster, operator);
    if (!stored) return {};
    const policy = await parse(stored.name, stored.text);
    note(`Judged by the policy of the operator in ${operator.namespace}: ${stored.name}`);
    return policy;
  } catch (error) {
    if (error instanceof CliError) throw notRight(operator, error);
    if (!(error instanceof OperatorError)) throw error;
    warn(
      `The policy of the operator in ${operator.namespace} can't be read (${error.message}): nothing is taken to be ` +
        'forbidden; give it with --policy',
    );
    return undefined;
  }
}

function notRight({ namespace }: InstalledOperator, { lines }: CliError): CliError {
  const consequence = `The operator in ${namespace} goes on by the policy that it had before; mend it, or give that one with --policy`;
  return new CliError([...lines, consequence], 3);
}
