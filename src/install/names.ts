/** The name of whatever there is one of in the operator's namespace. */
export const INSTALL_NAME = 'reconstruct';

/** Where the operator is installed unless another namespace is named. */
export const DEFAULT_NAMESPACE = 'reconstruct-system';

/** Applies what is installed. */
export const INSTALL_MANAGER = 'reconstruct-install';

/** On everything that is installed, by whatever means. */
export function installLabels(managedBy = INSTALL_MANAGER): Record<string, string> {
  return {
    'app.kubernetes.io/name': INSTALL_NAME,
    'app.kubernetes.io/part-of': INSTALL_NAME,
    'app.kubernetes.io/managed-by': managedBy,
  };
}

/** On everything that `reconstruct install` installs. */
export const INSTALL_LABELS: Readonly<Record<string, string>> = installLabels();

/** On everything but CRDs, which several installations share: the namespace of the operator that it is of. */
export const INSTALLATION_LABEL = 'reconstruct.kosmos.io/installation';

/** The labels that are the installation's to set. */
export const INSTALLATION_LABELS: readonly string[] = [...Object.keys(INSTALL_LABELS), INSTALLATION_LABEL];

/** What the operator's own Pods carry, and nothing else does. */
export function podLabels(namespace: string): Record<string, string> {
  return { 'app.kubernetes.io/name': INSTALL_NAME, [INSTALLATION_LABEL]: namespace };
}

/** Of Roles and bindings, wherever they are: several installations may be in one cluster, or watch one namespace. */
export function accessName(namespace: string, role?: string): string {
  return [INSTALL_NAME, namespace, ...(role === undefined ? [] : [role])].join(':');
}

export const METRICS_SERVICE = 'reconstruct-metrics';
export const POLICY_CONFIG_MAP = 'reconstruct-policy';
export const DASHBOARD_CONFIG_MAP = 'reconstruct-dashboard';
