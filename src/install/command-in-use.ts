import { POLICY_FILE } from './arguments.js';
import { POLICY_CONFIG_MAP } from './names.js';
import type { OptionsInUse } from './options-in-use.js';

/** What a command that is proposed takes over from the one that was given, each with its name as an option. */
export interface Given {
  /** By which the cluster is found. @default - none */
  readonly cluster?: Readonly<Record<string, string>>;
  /** These win over those in use. @default - none */
  readonly options?: Readonly<Record<string, string>>;
}

/** The command that installs an operator with the options that it has, for a shell. */
export function commandInUse(inUse: OptionsInUse, { cluster = {}, options: given = {} }: Given = {}): string {
  const { namespace, kinds, watchNamespaces, policy, flags, monitoring, image, replicas } = inUse;
  const options: Record<string, string> = {
    '--namespace': namespace,
    ...(kinds && { '--kinds': kinds.join() }),
    ...(watchNamespaces && { '--watch-namespace': watchNamespaces.join() }),
    ...(policy && { '--policy': POLICY_FILE }),
    ...Object.fromEntries(Object.entries(flags).map(([name, value]) => [name, [value].flat().join()])),
    ...(monitoring && { '--monitoring': monitoring.parts.join() }),
    ...(monitoring?.labels && {
      '--monitoring-labels': Object.entries(monitoring.labels)
        .map((label) => label.join('='))
        .join(),
    }),
    ...(monitoring?.runbooks !== undefined && { '--runbooks': monitoring.runbooks }),
    ...(image !== undefined && { '--image': image }),
    ...(replicas !== undefined && { '--replicas': String(replicas) }),
    ...given,
  };
  const install = `reconstruct install --apply ${written({ ...options, ...cluster })}`;
  if (!policy) return install;
  // It may have been edited since it was installed.
  const read = `kubectl get configmap ${POLICY_CONFIG_MAP} ${written({ '--namespace': namespace, ...cluster })}`;
  return `${read} -o jsonpath='{.data.${POLICY_FILE.replace('.', '\\.')}}' > ${POLICY_FILE} && ${install}`;
}

function written(options: Readonly<Record<string, string>>): string {
  return Object.entries(options)
    .map(([name, value]) => `${name} ${quoted(value)}`)
    .join(' ');
}

/** As a shell reads it. */
function quoted(value: string): string {
  return /^[\w@%+=:,./-]+$/.test(value) ? value : `'${value.replaceAll("'", "'\\''")}'`;
}
