import { OperatorError } from '../contract/error.js';
import type { Kind } from '../contract/kind.js';
import { definitionName, definitionType } from '../contract/resource.js';
import { operatorRules } from './access.js';
import type { Surroundings } from './access.js';
import { kindName } from './arguments.js';
import { namespaceType } from './cluster.js';
import type { Cluster, Tell } from './cluster.js';
import { prometheusRuleType, serviceMonitorType } from './monitoring/prometheus.js';
import type { InstallProps, MonitoringPart, MonitoringProps } from './props.js';

export interface InstallableOptions {
  /** A kind that can't be installed yet is left out and told of; otherwise it is an error. */
  readonly mayLeaveOut: boolean;
  readonly tell: Tell;
}

/** The namespaces of others in which a kind needs a Role. */
export function foreignNamespaces(kind: Kind, props: Surroundings): string[] {
  const needed = operatorRules([kind], props).flatMap(({ namespaces = [] }) => namespaces);
  return [...new Set(needed)].filter((namespace) => namespace !== props.namespace);
}

/**
 * The kinds whose rights can be given in any cluster, as where there is none to be asked: a kind that needs a namespace
 * of others is left out, and told of.
 */
export function kindsForAnyCluster(props: InstallProps, tell: Tell): Kind[] {
  return props.kinds.filter((kind) => {
    const [namespace] = foreignNamespaces(kind, props);
    if (namespace === undefined) return true;
    tell(
      `${kindName(kind)} needs rights in the namespace ${namespace}, which may not be there: it is left out; name it to ` +
        `have it, as in --kinds ${props.kinds.map(({ name }) => name).join()}`,
    );
    return false;
  });
}

/**
 * The kinds for which rights can be given: a Role needs its namespace, and one of somebody else isn't ours to make.
 * @throws OperatorError `NamespaceMissing`
 */
export async function installableKinds(
  props: InstallProps,
  cluster: Cluster,
  { mayLeaveOut, tell }: InstallableOptions,
): Promise<Kind[]> {
  const [unwatchable] = await missing(props.watchNamespaces ?? [], props.namespace, cluster);
  if (unwatchable !== undefined) {
    throw namespaceMissing(
      `There is no namespace ${unwatchable}: create it, or leave it out of --watch-namespace`,
    );
  }
  const installable: Kind[] = [];
  for (const kind of props.kinds) {
    const [namespace] = await missing(foreignNamespaces(kind, props), props.namespace, cluster);
    if (namespace === undefined) {
      installable.push(kind);
      continue;
    }
    const why = `${kindName(kind)} needs rights in the namespace ${namespace}, which isn't there`;
    if (!mayLeaveOut)
      throw namespaceMissing(
        `${why}: create it, name another one by the kind's options, or leave the kind out of --kinds`,
      );
    tell(`${why}: it is left out; install again once it is there`);
  }
  if (installable.length > 0) return installable;
  throw namespaceMissing('No kind is left to install: create the namespaces that they need first');
}

function namespaceMissing(message: string): OperatorError {
  return new OperatorError({ reason: 'NamespaceMissing', message });
}

async function missing(names: Iterable<string>, own: string, cluster: Cluster): Promise<string[]> {
  // Its own is made on the way.
  const others = [...names].filter((name) => name !== own);
  const found = await Promise.all(others.map((name) => cluster.find(namespaceType, name)));
  return others.filter((_, index) => !found[index]);
}

const TYPES = { 'service-monitor': serviceMonitorType, rules: prometheusRuleType };

/** The parts whose kinds the cluster knows; what has to be left out is told. */
export async function availableMonitoring(
  props: MonitoringProps,
  cluster: Cluster,
  tell: Tell,
): Promise<MonitoringProps> {
  const parts: MonitoringPart[] = [];
  for (const part of props.parts) {
    const type = part === 'dashboard' ? undefined : TYPES[part];
    if (!type || (await cluster.find(definitionType, definitionName(type)))) parts.push(part);
    else {
      tell(
        `There is no CustomResourceDefinition ${definitionName(type)}, so the ${type.kind} is left out: install ` +
          'the Prometheus operator, and give the command again',
      );
    }
  }
  return { ...props, parts };
}
