import { ApiObject } from 'cdk8s';
import { ConfigMap } from 'cdk8s-plus-27';
import { Construct } from 'constructs';
import { DASHBOARD_CONFIG_MAP, INSTALL_NAME, podLabels } from '../names.js';
import { alertGroups } from './alerts.js';
import { dashboardText } from './dashboard.js';
import { RUNBOOKS } from '../props.js';
import type { MonitoringPart, MonitoringProps } from '../props.js';
import { queryIn, prometheusRuleType, serviceMonitorType } from './prometheus.js';
import type { AlertingRule, PrometheusRuleSpec, RuleGroup, ServiceMonitorSpec } from './prometheus.js';

/** Twice within the shortest time that an alert waits for. */
const SCRAPE_INTERVAL = '30s';

/** By it the sidecar of Grafana's chart finds dashboards, unless it is told otherwise. */
export const DASHBOARD_LABELS = { grafana_dashboard: '1' };

/** What lets Prometheus and Grafana watch over the operator. */
export class Monitoring extends Construct {
  constructor(scope: Construct, id: string, props: MonitoringProps & { readonly namespace: string }) {
    super(scope, id);
    const { namespace, parts, labels = {} } = props;
    const has = (part: MonitoringPart): boolean => parts.includes(part);
    const metadata = { name: INSTALL_NAME, namespace, labels };
    if (has('service-monitor')) {
      const spec: ServiceMonitorSpec = {
        // The metrics Service has the labels of the Pods, and no other Service has.
        selector: { matchLabels: podLabels(namespace) },
        namespaceSelector: { matchNames: [namespace] },
        endpoints: [{ port: 'metrics', interval: SCRAPE_INTERVAL }],
      };
      const { apiVersion, kind } = serviceMonitorType;
      new ApiObject(this, 'ServiceMonitor', { apiVersion, kind, metadata, spec });
    }
    if (has('rules')) {
      const spec: PrometheusRuleSpec = { groups: ruleGroups(props) };
      const { apiVersion, kind } = prometheusRuleType;
      new ApiObject(this, 'PrometheusRule', { apiVersion, kind, metadata, spec });
    }
    if (has('dashboard')) {
      new ConfigMap(this, 'Dashboard', {
        metadata: { name: DASHBOARD_CONFIG_MAP, namespace, labels: { ...DASHBOARD_LABELS, ...labels } },
        data: { 'reconstruct.json': dashboardText() },
      });
    }
  }
}

interface RulesProps {
  /** Where the operator runs. */
  readonly namespace: string;
  /** See `MonitoringProps`. */
  readonly runbooks?: string;
}

/** The alerts of one operator, as Prometheus reads them. */
export function ruleGroups({ namespace, runbooks = RUNBOOKS }: RulesProps): RuleGroup[] {
  const query = queryIn(namespace);
  return Object.entries(alertGroups).map(([name, alerts]) => ({
    name,
    rules: alerts.map((alert): AlertingRule => ({
      alert: alert.name,
      expr: alert.expr(query),
      ...(alert.for !== undefined && { for: alert.for }),
      labels: { severity: alert.severity },
      annotations: {
        summary: alert.summary,
        description: alert.description,
        runbook_url: `${runbooks}/${alert.name}.md`,
      },
    })),
  }));
}
