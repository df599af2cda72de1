import type { Kind } from '../contract/kind.js';
import { groupOf } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import type { InstallProps } from './props.js';

export const METRICS_PORT = 8080;
export const HEALTH_PORT = 8081;

/** Where the policy is in the container. */
export const POLICY_FOLDER = '/etc/reconstruct';
export const POLICY_FILE = 'policy.yaml';

/** The full name of a kind, as `--kinds` takes it. */
export function kindName({ name, type }: Pick<Kind, 'name' | 'type'>): string {
  return `${name}.${groupOf(type.apiVersion)}`;
}

/**
 * The arguments of the container. The kinds are always named, so that an image with more of them doesn't ask for what
 * wasn't granted.
 */
export function runArguments({ kinds, watchNamespaces, flags = {}, policy }: InstallProps): string[] {
  const names = kinds.map(kindName).sort();
  return [
    'run',
    `--kinds=${names.join()}`,
    ...(watchNamespaces ? [`--watch-namespace=${[...watchNamespaces].sort().join()}`] : []),
    ...(policy ? [`--policy=${POLICY_FOLDER}/${POLICY_FILE}`] : []),
    '--leader-elect',
    `--metrics-bind-address=:${METRICS_PORT}`,
    `--health-bind-address=:${HEALTH_PORT}`,
    ...Object.keys(flags)
      .sort()
      .map((name) => `${name}=${[flags[name] ?? []].flat().join()}`),
  ];
}

interface Container {
  readonly args?: readonly string[];
  readonly image?: string;
}

/** The arguments of the container of an operator's Deployment. */
export function argumentsOf(deployment: AnyObject): readonly string[] {
  return containerOf(deployment)?.args ?? [];
}

/** The image of that container. */
export function imageOf(deployment: AnyObject): string | undefined {
  return containerOf(deployment)?.image;
}

function containerOf(deployment: AnyObject): Container | undefined {
  const { spec } = deployment as unknown as {
    spec?: { template?: { spec?: { containers?: readonly Container[] } } };
  };
  return spec?.template?.spec?.containers?.[0];
}

/** The values of one of them, as `runArguments` writes them. @returns undefined where it isn't given */
export function argumentOf(args: readonly string[], flag: string): string[] | undefined {
  return args
    .find((arg) => arg.startsWith(`${flag}=`))
    ?.slice(flag.length + 1)
    .split(',');
}

/** What the container may take; alerts compare with it. */
export const MEMORY_LIMIT_MEBIBYTES = 512;
