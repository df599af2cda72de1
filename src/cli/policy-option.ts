import type { Kind, Policy } from '../contract/kind.js';
import { loadKinds } from './config.js';

interface PolicyFlags {
  readonly policy?: string;
  readonly config?: string;
}

/**
 * The policy that `--policy` names, if it does. It may speak of every kind that is known, also of those that `--kinds`
 * leaves out.
 * @throws CliError with exit code 2
 */
export async function policyOf(
  { policy, config }: PolicyFlags,
  builtIn: readonly Kind[],
): Promise<Policy | undefined> {
  if (policy === undefined) return undefined;
  // Loaded here, so that whoever has no policy needs no validator.
  const { loadPolicy } = await import('./policy.js');
  return loadPolicy(policy, await loadKinds({ builtIn, ...(config !== undefined && { config }) }));
}
