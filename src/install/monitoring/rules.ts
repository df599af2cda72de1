import { alertGroups } from './alerts.js';
import { RUNBOOKS } from './props.js';
import { queryIn } from './query.js';
import type { AlertingRule, RuleGroup } from './types.js';

export interface RulesProps {
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
