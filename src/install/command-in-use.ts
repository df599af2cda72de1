import type { FlagValues, KindFlag } from '../contract/kind.js';
import type { AnyObject } from '../contract/object.js';
import { argumentOf, argumentsOf, imageOf, POLICY_FILE } from './arguments.js';
import { flagsOf, operatorOf, isOperator } from './installed.js';
import { DASHBOARD_LABELS } from './monitoring/monitoring.js';
import { prometheusRuleType, serviceMonitorType } from './monitoring/prometheus.js';
import type { PrometheusRuleSpec } from './monitoring/prometheus.js';
import {
  accessName,
  DASHBOARD_CONFIG_MAP,
  INSTALL_LABELS,
  INSTALLATION_LABEL,
  POLICY_CONFIG_MAP,
} from './names.js';
import { MONITORING_PARTS, RUNBOOKS } from './props.js';
import type { MonitoringPart, MonitoringProps } from './props.js';

/** The options of an installation that is there, as its objects tell them. */
export interface OptionsInUse {
  readonly namespace: string;
  /** By their full names. @default - not known, as where the Deployment is gone */
  readonly kinds?: readonly string[];
  /** @default - all */
  readonly watchNamespaces?: readonly string[];
  /** Whether there is one, in a ConfigMap or among the arguments. */
  readonly policy: boolean;
  readonly flags: FlagValues;
  /** @default - nothing of it */
  readonly monitoring?: MonitoringProps;
  /** @default - not known */
  readonly image?: string;
  /** @default - not known */
  readonly replicas?: number;
}

/**
 * Reads them off what is installed, the Deployment above all; without it, off what it has left.
 * @param installed all of an installation in that namespace
 * @param flags of kinds, those that are looked for
 */
export function optionsInUse(
  namespace: string,
  installed: readonly AnyObject[],
  flags: readonly KindFlag[],
): OptionsInUse {
  const deployment = installed.find((object) => object.kind === 'Deployment' && isOperator(object));
  const hasPolicy = installed.some(
    ({ kind, metadata: { name } }) => kind === 'ConfigMap' && name === POLICY_CONFIG_MAP,
  );
  const monitoring = monitoringInUse(installed);
  const common = { namespace, ...(monitoring && { monitoring }) };
  if (!deployment) {
    const watchNamespaces = namespacesByRoles(namespace, installed);
    return { ...common, policy: hasPolicy, flags: {}, ...(watchNamespaces && { watchNamespaces }) };
  }
  const operator = operatorOf(deployment);
  const { replicas } = (deployment.spec ?? {}) as { readonly replicas?: number };
  const image = imageOf(deployment);
  return {
    ...common,
    ...(operator.kinds.length > 0 && { kinds: operator.kinds }),
    ...(operator.watchNamespaces && { watchNamespaces: operator.watchNamespaces }),
    policy: hasPolicy || argumentOf(argumentsOf(deployment), '--policy') !== undefined,
    flags: flagsOf(operator, flags),
    ...(image !== undefined && { image }),
    // With none, it was stopped, and not installed so.
    ...(replicas && { replicas }),
  };
}

/** Users have Roles in the namespaces that are watched, and nowhere else. */
function namespacesByRoles(namespace: string, installed: readonly AnyObject[]): string[] | undefined {
  const found = installed
    .filter(({ kind, metadata: { name } }) => kind === 'Role' && name === accessName(namespace, 'view'))
    .flatMap(({ metadata }) => metadata.namespace ?? []);
  return found.length > 0 ? found.sort() : undefined;
}

const OWN_LABELS = [...Object.keys({ ...INSTALL_LABELS, ...DASHBOARD_LABELS }), INSTALLATION_LABEL];

/** What an installation has for Prometheus and Grafana. @returns undefined where it has nothing */
function monitoringInUse(installed: readonly AnyObject[]): MonitoringProps | undefined {
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

/** What a command that is proposed takes over from the one that was given, each with its name as an option. */
export interface Given {
  /** By which the cluster is found. @default - none */
  readonly cluster?: Readonly<Record<string, string>>;
  /** These win over those in use. @default - none */
  readonly options?: Readonly<Record<string, string>>;
}

/** The command that installs an operator with the options that it has, for a shell. */
export function commandInUse(inUse: OptionsInUse, { cluster = {}, options: given = {} }: Given = {}): string {
  const { namespace, kinds, watchNamespaces, policy, flags, monitoring, image, replicas } = inUse;
  const options: Record<string, string> = {
    '--namespace': namespace,
    ...(kinds && { '--kinds': kinds.join() }),
    ...(watchNamespaces && { '--watch-namespace': watchNamespaces.join() }),
    ...(policy && { '--policy': POLICY_FILE }),
    ...Object.fromEntries(Object.entries(flags).map(([name, value]) => [name, [value].flat().join()])),
    ...(monitoring && { '--monitoring': monitoring.parts.join() }),
    ...(monitoring?.labels && {
      '--monitoring-labels': Object.entries(monitoring.labels)
        .map((label) => label.join('='))
        .join(),
    }),
    ...(monitoring?.runbooks !== undefined && { '--runbooks': monitoring.runbooks }),
    ...(image !== undefined && { '--image': image }),
    ...(replicas !== undefined && { '--replicas': String(replicas) }),
    ...given,
  };
  const install = `reconstruct install --apply ${written({ ...options, ...cluster })}`;
  if (!policy) return install;
  // It may have been edited since it was installed.
  const read = `kubectl get configmap ${POLICY_CONFIG_MAP} ${written({ '--namespace': namespace, ...cluster })}`;
  return `${read} -o jsonpath='{.data.${POLICY_FILE.replace('.', '\\.')}}' > ${POLICY_FILE} && ${install}`;
}

function written(options: Readonly<Record<string, string>>): string {
  return Object.entries(options)
    .map(([name, value]) => `${name} ${quoted(value)}`)
    .join(' ');
}

/** As a shell reads it. */
function quoted(value: string): string {
  return /^[\w@%+=:,./-]+$/.test(value) ? value : `'${value.replaceAll("'", "'\\''")}'`;
}
