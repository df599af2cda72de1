import { definitionName, definitionType } from '../../contract/resource.js';
import type { Cluster, Tell } from '../cluster.js';
import type { MonitoringPart, MonitoringProps } from './props.js';
import { prometheusRuleType, serviceMonitorType } from './types.js';

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
