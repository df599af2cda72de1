import type { FlagValues, Kind, Policy } from '../contract/kind.js';

/** Options of an installation. */
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
  /** Values of the kinds' flags; they become arguments of the container, and rights may depend on them. @default - none */
  readonly flags?: FlagValues;
  /** @default - none, which allows all but routes */
  readonly policy?: InstalledPolicy;
  /** @default - none */
  readonly monitoring?: MonitoringProps;
}

/** The admin's policy. */
export interface InstalledPolicy {
  /** As it was written. */
  readonly text: string;
  readonly parsed: Policy;
}

/**
 * - `service-monitor`: has Prometheus collect the metrics, through the Prometheus operator.
 * - `rules`: its alerts.
 * - `dashboard`: a ConfigMap that Grafana's sidecar finds.
 */
export const MONITORING_PARTS = ['service-monitor', 'rules', 'dashboard'] as const;
export type MonitoringPart = (typeof MONITORING_PARTS)[number];

/** Path of the alerts' runbooks in the repository. */
export const RUNBOOKS = 'docs/runbooks';

/** Objects for Prometheus and Grafana. */
export interface MonitoringProps {
  readonly parts: readonly MonitoringPart[];
  /** On each of the objects, where they are selected by labels, as in `release: prometheus`. @default - none */
  readonly labels?: Readonly<Record<string, string>>;
  /** URL of docs/runbooks, without a slash at the end. @default - the path in the repository */
  readonly runbooks?: string;
}
