import { OperatorError } from '../contract/error.js';
import type { AnyObject } from '../contract/object.js';
import { kindName } from './arguments.js';
import { commandInUse } from './command-in-use.js';
import type { Given } from './command-in-use.js';
import { accessName, POLICY_CONFIG_MAP } from './names.js';
import type { OptionsInUse } from './options-in-use.js';
import type { InstallProps } from './props.js';

/**
 * What an installation with these options would take from one that is there, for people. Another value of an option that
 * is given is no loss, nor is more of a list, or Roles in place of a ClusterRole.
 * @param installed all of the installation that is there
 */
export function losses(inUse: OptionsInUse, installed: readonly AnyObject[], props: InstallProps): string[] {
  const { namespace, policy, kinds = [], watchNamespaces, flags, monitoring } = inUse;
  const names = props.kinds.map(kindName);
  const lostKinds = kinds.filter((name) => !names.includes(name));
  const lostNamespaces = (props.watchNamespaces ? (watchNamespaces ?? []) : []).filter(
    (name) => !props.watchNamespaces?.includes(name) && isThere(name, namespace, installed),
  );
  const lostFlags = Object.keys(flags).filter((name) => props.flags?.[name] === undefined);
  const lostParts = (monitoring?.parts ?? []).filter((part) => !props.monitoring?.parts.includes(part));
  return [
    ...(policy && !props.policy ? [`its policy (ConfigMap ${namespace}/${POLICY_CONFIG_MAP})`] : []),
    ...(lostKinds.length > 0 ? [`the kinds ${lostKinds.join(', ')}`] : []),
    ...(watchNamespaces && !props.watchNamespaces
      ? [`its limit to the namespaces ${watchNamespaces.join(', ')}, and have rights in the whole cluster`]
      : []),
    ...(lostNamespaces.length > 0 ? [`the namespaces ${lostNamespaces.join(', ')}`] : []),
    ...(lostFlags.length > 0 ? [`the options ${lostFlags.join(', ')}`] : []),
    ...(lostParts.length > 0 ? [`its monitoring (${lostParts.join(', ')})`] : []),
  ];
}

/** A namespace that was deleted has taken its Roles with it: it can't be kept. */
function isThere(watched: string, namespace: string, installed: readonly AnyObject[]): boolean {
  return installed.some(
    ({ kind, metadata }) =>
      kind === 'Role' && metadata.namespace === watched && metadata.name === accessName(namespace, 'view'),
  );
}

/** @throws OperatorError `OptionsLeftOut`, with the command that keeps what there is */
export function refuseLosses(
  inUse: OptionsInUse,
  installed: readonly AnyObject[],
  props: InstallProps,
  given: Given,
): void {
  const lost = losses(inUse, installed, props);
  if (lost.length === 0) return;
  throw new OperatorError({
    reason: 'OptionsLeftOut',
    message:
      `With these options the operator in the namespace ${inUse.namespace} would lose ${lost.join('; ')}: keep the options ` +
      `in use with "${commandInUse(inUse, given)}", or add --replace to drop what is left out`,
  });
}
