import { OperatorError } from '../contract/error.js';
import type { Kind } from '../contract/kind.js';
import { definitionName, definitionType } from '../contract/resource.js';
import { namespaceType, prometheusRuleType, serviceMonitorType } from './cluster.js';
import type { Cluster, Report } from './cluster.js';
import { kindName } from './names.js';
import type { InstallProps, MonitoringPart, MonitoringProps } from './props.js';
import { operatorRules } from './rules.js';
import type { RightsProps } from './rules.js';

/** Returns the namespaces, beside the operator's own, in which a kind needs a Role whatever is watched. */
export function foreignNamespaces(kind: Kind, props: RightsProps): string[] {
  const needed = operatorRules([kind], props).flatMap(({ namespaces = [] }) => namespaces);
  return [...new Set(needed)].filter((namespace) => namespace !== props.namespace);
}

/** Returns the kinds whose rights can be given in any cluster. @param report is called for each kind that is left out */
export function kindsForAnyCluster(props: InstallProps, report: Report): Kind[] {
  return props.kinds.filter((kind) => {
    const [namespace] = foreignNamespaces(kind, props);
    if (namespace !== undefined)
      report(
        `${kindName(kind)} needs rights in the namespace ${namespace}, which may not be there: it is left out; name it to ` +
          `have it, as in --kinds ${props.kinds.map(({ name }) => name).join()}`,
      );
    return namespace === undefined;
  });
}

/**
 * Returns the kinds whose rights can be given in this cluster: a Role needs its namespace, which isn't ours to create.
 * @param mayLeaveOut leaves out a kind that can't be installed yet, with a line, instead of failing
 * @throws OperatorError `NamespaceMissing`
 */
export async function installableKinds(
  props: InstallProps,
  cluster: Cluster,
  mayLeaveOut: boolean,
  report: Report,
): Promise<Kind[]> {
  const missing = (message: string) => new OperatorError({ reason: 'NamespaceMissing', message });
  // The operator's own is created by the installation.
  const firstMissing = async (names: readonly string[]): Promise<string | undefined> => {
    for (const name of names.filter((each) => each !== props.namespace))
      if (!(await cluster.find(namespaceType, name))) return name;
    return undefined;
  };
  const unwatchable = await firstMissing(props.watchNamespaces ?? []);
  if (unwatchable !== undefined)
    throw missing(`There is no namespace ${unwatchable}: create it, or leave it out of --watch-namespace`);
  const installable: Kind[] = [];
  for (const kind of props.kinds) {
    const namespace = await firstMissing(foreignNamespaces(kind, props));
    const why = `${kindName(kind)} needs rights in the namespace ${namespace}, which isn't there`;
    if (namespace === undefined) installable.push(kind);
    else if (mayLeaveOut) report(`${why}: it is left out; install again once it is there`);
    else
      throw missing(
        `${why}: create it, name another one by the kind's options, or leave the kind out of --kinds`,
      );
  }
  if (installable.length > 0) return installable;
  throw missing('No kind is left to install: create the namespaces that they need first');
}

/** Returns the monitoring parts whose types the cluster has. @param report is called for each part that is left out */
export async function availableMonitoring(
  props: MonitoringProps,
  cluster: Cluster,
  report: Report,
): Promise<MonitoringProps> {
  const types = { 'service-monitor': serviceMonitorType, rules: prometheusRuleType, dashboard: undefined };
  const parts: MonitoringPart[] = [];
  for (const part of props.parts) {
    const type = types[part];
    if (!type || (await cluster.find(definitionType, definitionName(type)))) parts.push(part);
    else
      report(
        `There is no CustomResourceDefinition ${definitionName(type)}, so the ${type.kind} is left out: install ` +
          'the Prometheus operator, and give the command again',
      );
  }
  return { ...props, parts };
}
