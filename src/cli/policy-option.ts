import type { Kind, Policy } from '../contract/kind.js';
import { loadKinds } from './config.js';
import type { PolicyFile } from './followed-policy.js';

interface PolicyFlags {
  readonly policy?: string;
  readonly config?: string;
}

/**
 * The policy that `--policy` names, if it does. It may speak of every kind that is known, also of those that `--kinds`
 * leaves out.
 * @throws CliError with exit code 2
 */
export async function policyOf(flags: PolicyFlags, builtIn: readonly Kind[]): Promise<Policy | undefined> {
  const file = await policyFileOf(flags, builtIn);
  return file?.parse(await file.read());
}

/** The file that `--policy` names, if it does; nothing of it is read yet. */
export async function policyFileOf(
  { policy, config }: PolicyFlags,
  builtIn: readonly Kind[],
): Promise<PolicyFile | undefined> {
  if (policy === undefined) return undefined;
  // Loaded here, so that whoever has no policy needs no validator.
  const { parsePolicy, readPolicy } = await import('./policy.js');
  const kinds = await loadKinds({ builtIn, ...(config !== undefined && { config }) });
  return {
    name: policy,
    read: () => readPolicy(policy),
    parse: (text) => parsePolicy(policy, text, kinds),
  };
}
