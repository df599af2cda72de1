/**
 * - `service-monitor`: the Prometheus operator lets Prometheus collect the metrics.
 * - `rules`: its alerts.
 * - `dashboard`: a ConfigMap that Grafana's sidecar finds.
 */
export const MONITORING_PARTS = ['service-monitor', 'rules', 'dashboard'] as const;
export type MonitoringPart = (typeof MONITORING_PARTS)[number];

/** Where the pages of the alerts are, seen from the root of the repository. */
export const RUNBOOKS = 'docs/runbooks';

/** What lets others watch over the operator. */
export interface MonitoringProps {
  readonly parts: readonly MonitoringPart[];
  /** On each of the objects, for whoever selects them by labels, as in `release: prometheus`. @default - none */
  readonly labels?: Readonly<Record<string, string>>;
  /** Where people read docs/runbooks, without a slash at the end. @default - the path in the repository */
  readonly runbooks?: string;
}
