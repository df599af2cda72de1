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
  const kinds = await knownKinds({ config }, builtIn);
  return {
    name: policy,
    read: () => readPolicy(policy),
    parse: (text) => parsePolicy(policy, text, kinds),
  };
}

/** Makes a policy of a text that stands elsewhere than in the file that `--policy` names; see `parsePolicy`. */
export function policyParser(
  flags: Pick<PolicyFlags, 'config'>,
  builtIn: readonly Kind[],
): (name: string, text: string) => Promise<Policy> {
  return async (name, text) => {
    const { parsePolicy } = await import('./policy.js');
    return parsePolicy(name, text, await knownKinds(flags, builtIn));
  };
}

function knownKinds(
  { config }: { readonly config?: string | undefined },
  builtIn: readonly Kind[],
): Promise<Kind[]> {
  return loadKinds({ builtIn, ...(config !== undefined && { config }) });
}
