import type { FlagValues, Kind, Policy } from '../contract/kind.js';

/** What is to be installed. */
export interface InstallProps {
  /** Where the operator runs. */
  readonly namespace: string;
  /** With a tag or a digest. */
  readonly image: string;
  readonly kinds: readonly Kind[];
  /** Watched with Roles in them, and nothing cluster-wide. @default - all, with a ClusterRole */
  readonly watchNamespaces?: readonly string[];
  /** Of which one leads. */
  readonly replicas: number;
  /** Values of the kinds' flags: passed on, and a reason for rights. @default - none */
  readonly flags?: FlagValues;
  /** @default - none, which allows all but routes */
  readonly policy?: InstalledPolicy;
  /** @default - nothing of it */
  readonly monitoring?: MonitoringProps;
  /** Who manages what is installed, as the label says by which it is known as ours. @default - `reconstruct install` */
  readonly managedBy?: string;
}

/** What the admin allows. */
export interface InstalledPolicy {
  /** As it was written. */
  readonly text: string;
  readonly parsed: Policy;
}

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
