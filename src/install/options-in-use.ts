import type { FlagValues, KindFlag } from '../contract/kind-flag.js';
import type { AnyObject } from '../contract/object.js';
import { argumentOf, argumentsOf, imageOf } from './arguments.js';
import { flagsOf, operatorOf } from './installed-operators.js';
import { DASHBOARD_LABELS } from './monitoring/monitoring.js';
import { MONITORING_PARTS, RUNBOOKS } from './monitoring/props.js';
import type { MonitoringPart, MonitoringProps } from './monitoring/props.js';
import { prometheusRuleType, serviceMonitorType } from './monitoring/types.js';
import type { PrometheusRuleSpec } from './monitoring/types.js';
import {
  accessName,
  DASHBOARD_CONFIG_MAP,
  INSTALL_LABELS,
  INSTALLATION_LABEL,
  POLICY_CONFIG_MAP,
} from './names.js';
import { isOperator } from './ours.js';

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
