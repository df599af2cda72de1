import type { Kind } from '../contract/kind.js';
import { groupOf } from '../contract/object.js';

export const INSTALL_NAME = 'reconstruct';

/** Namespace of the operator, unless another one is named. */
export const DEFAULT_NAMESPACE = 'reconstruct-system';

export const INSTALL_MANAGER = 'reconstruct-install';

/** Labels of everything that `reconstruct install` installs. */
export const INSTALL_LABELS: Readonly<Record<string, string>> = {
  'app.kubernetes.io/name': INSTALL_NAME,
  'app.kubernetes.io/part-of': INSTALL_NAME,
  'app.kubernetes.io/managed-by': INSTALL_MANAGER,
};

/** Label with the namespace of the operator, on everything but CRDs, which several installations share. */
export const INSTALLATION_LABEL = 'reconstruct.kosmos.io/installation';

/** Labels that users can't set. */
export const INSTALLATION_LABELS: readonly string[] = [...Object.keys(INSTALL_LABELS), INSTALLATION_LABEL];

/** Labels of the operator's Pods; nothing else in the cluster carries both. */
export function podLabels(namespace: string): Record<string, string> {
  return { 'app.kubernetes.io/name': INSTALL_NAME, [INSTALLATION_LABEL]: namespace };
}

/** Name of Roles and bindings: several installations may share a cluster, or watch one namespace. */
export function accessName(namespace: string, role?: string): string {
  return [INSTALL_NAME, namespace, ...(role === undefined ? [] : [role])].join(':');
}

/** Annotation of the Deployment with the options of `install` that it has, as JSON. */
export const OPTIONS_ANNOTATION = 'reconstruct.kosmos.io/install-options';

export const METRICS_SERVICE = 'reconstruct-metrics';
export const DASHBOARD_CONFIG_MAP = 'reconstruct-dashboard';

/** Places of the admin's files: the key in a ConfigMap is their name in the folder where it is mounted. */
export const MOUNTED = {
  policy: { configMap: 'reconstruct-policy', key: 'policy.yaml', folder: '/etc/reconstruct' },
  settings: { configMap: 'reconstruct-settings', key: 'settings.yaml', folder: '/etc/reconstruct-settings' },
} as const;
/** Folder at which the certificate of the metrics is mounted. */
export const CERTIFICATE_FOLDER = '/etc/reconstruct-metrics';

export function kindName({ name, type }: Pick<Kind, 'name' | 'type'>): string {
  return `${name}.${groupOf(type.apiVersion)}`;
}

/** Returns the environment variable by which `run` takes an option: `RECONSTRUCT_LOG_LEVEL` for `--log-level`. */
export function environmentName(flag: string): string {
  return `RECONSTRUCT_${flag.slice(2).toUpperCase().replaceAll('-', '_')}`;
}
