import { ADMIN_FILES } from '../contract/kind.js';
import type { AdminFile, FlagValues, Kind, Sections, StandaloneController } from '../contract/kind.js';
import { kindName, MOUNTED } from './names.js';

/** Files of the admin; without a policy, all but routes is allowed. */
export type GivenFiles = {
  readonly [Name in AdminFile]?: { readonly text: string; readonly parsed: Sections };
};

export interface InstallProps extends GivenFiles {
  readonly namespace: string;
  readonly image: string;
  readonly kinds: readonly Kind[];
  /** Controllers without custom resources. @default - none */
  readonly controllers?: readonly StandaloneController[];
  /** Watched with Roles in them, and nothing cluster-wide. @default - all, with a ClusterRole */
  readonly watchNamespaces?: readonly string[];
  readonly replicas: number;
  /** Whether UID, GID and fsGroup of the Pods are left to the cluster, as OpenShift wants it. @default false: 65532 */
  readonly omitUserIds?: boolean;
  /** Flags of the kinds; they become arguments of the container, and rights may depend on them. */
  readonly flags?: FlagValues;
  /** Value of `--on-upgrade`. @default - `apply` */
  readonly onUpgrade?: string;
  readonly monitoring?: MonitoringProps;
  /** Serves metrics by HTTPS, to those who may `get` them by RBAC. @default - to anyone in the cluster, by HTTP */
  readonly secureMetrics?: SecureMetricsProps;
}

export interface SecureMetricsProps {
  /** Secret with `tls.crt`, `tls.key` and `ca.crt`, as of cert-manager. @default - each Pod has a self-signed certificate */
  readonly certificateSecret?: string;
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

export interface MonitoringProps {
  readonly parts: readonly MonitoringPart[];
  readonly labels?: Readonly<Record<string, string>>;
  /** URL of docs/runbooks, without a slash at the end. @default - the path in the repository */
  readonly runbooks?: string;
}

/** Options of the command `install` by name; empty text for one without a value. */
export type InstallOptions = Readonly<Record<string, string>>;

/** Returns the options that lead to an installation. */
export function optionsOf(props: InstallProps): InstallOptions {
  const { kinds, controllers = [], watchNamespaces, flags = {}, monitoring, secureMetrics } = props;
  const labels = Object.entries(monitoring?.labels ?? {}).map((label) => label.join('='));
  const options: Readonly<Record<string, string | undefined>> = {
    '--kinds': [...kinds.map(kindName), ...controllers.map(({ name }) => name)].sort().join(),
    '--watch-namespace': watchNamespaces && [...watchNamespaces].sort().join(),
    ...Object.fromEntries(ADMIN_FILES.map((name) => [`--${name}`, props[name] && MOUNTED[name].configMap])),
    '--metrics-secure': secureMetrics && '',
    ...Object.fromEntries(Object.entries(flags).map(([name, value]) => [name, [value].flat().join()])),
    '--on-upgrade': props.onUpgrade,
    '--monitoring': monitoring?.parts.join(),
    '--monitoring-labels': labels.join() || undefined,
    '--runbooks': monitoring?.runbooks,
    '--metrics-cert-secret': secureMetrics?.certificateSecret,
    '--omit-user-ids': props.omitUserIds ? '' : undefined,
    '--image': props.image,
    '--replicas': String(props.replicas),
  };
  return Object.fromEntries(
    Object.entries(options).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}
