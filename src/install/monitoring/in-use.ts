import type { AnyObject } from '../../contract/object.js';
import { DASHBOARD_CONFIG_MAP, INSTALL_LABELS, INSTALLATION_LABEL } from '../names.js';
import { DASHBOARD_LABELS } from './monitoring.js';
import { MONITORING_PARTS, RUNBOOKS } from './props.js';
import type { MonitoringPart, MonitoringProps } from './props.js';
import { prometheusRuleType, serviceMonitorType } from './types.js';
import type { PrometheusRuleSpec } from './types.js';

const OWN_LABELS = [...Object.keys({ ...INSTALL_LABELS, ...DASHBOARD_LABELS }), INSTALLATION_LABEL];

/** What an installation has for Prometheus and Grafana. @returns undefined where it has nothing */
export function monitoringInUse(installed: readonly AnyObject[]): MonitoringProps | undefined {
  const found = new Map(
    installed.flatMap((object) => {
      const part = partOf(object);
      return part ? [[part, object] as const] : [];
    }),
  );
  const [first] = found.values();
  if (!first) return undefined;
  const labels = Object.entries(first.metadata.labels ?? {}).filter(([name]) => !OWN_LABELS.includes(name));
  const runbooks = runbooksOf(found.get('rules'));
  return {
    parts: MONITORING_PARTS.filter((part) => found.has(part)),
    ...(labels.length > 0 && { labels: Object.fromEntries(labels) }),
    ...(runbooks !== undefined && runbooks !== RUNBOOKS && { runbooks }),
  };
}

function partOf({ kind, metadata: { name } }: AnyObject): MonitoringPart | undefined {
  if (kind === serviceMonitorType.kind) return 'service-monitor';
  if (kind === prometheusRuleType.kind) return 'rules';
  return kind === 'ConfigMap' && name === DASHBOARD_CONFIG_MAP ? 'dashboard' : undefined;
}

/** All alerts have their pages in one place. */
function runbooksOf(rules: AnyObject | undefined): string | undefined {
  const { groups } = (rules?.spec ?? { groups: [] }) as PrometheusRuleSpec;
  return groups[0]?.rules[0]?.annotations.runbook_url?.replace(/\/[^/]*$/, '');
}
