import type { Readiness } from '../../../contract/conditions.js';
import { selectorLabels } from '../../../contract/names.js';
import type { CustomResource } from '../../../contract/object.js';
import type { KeptPod } from '../pods.js';
import type { AppServiceSpec, AppServiceStatus, FileMount } from '../spec.js';
import { sentence } from './sentence.js';

/** Volumes, sandbox and network take a moment in any pod that starts. */
const PATIENCE_SECONDS = 10;

type Resource = CustomResource<AppServiceSpec, AppServiceStatus>;

/**
 * What is told while the node of a pod has been preparing it for too long. That is all that can be seen without reading
 * Secrets and events, and it may come to a good end, so nothing is said to have failed. Always the same words.
 */
export function slowStart(cr: Resource, pods: readonly KeptPod[], now: Date): Readiness | undefined {
  if (!ends(pods).some((end) => end <= now.getTime())) return undefined;
  const mounted = mountedObjects(cr.spec);
  const look = `see the events of the pods for the reason: ${describeCommand(cr)}`;
  if (mounted.length === 0)
    return { phase: 'progressing', reason: 'WaitingForSandbox', message: sentence(waiting('its'), look) };
  const message = waiting('its volumes, its');
  const mounts = `these have to be there, with the keys that are asked for: ${mounted.join(', ')}`;
  return { phase: 'progressing', reason: 'WaitingForVolumes', message: sentence(message, mounts, look) };
}

/** Older kubelets tell that a pod is prepared only once its images are pulled. */
function waiting(what: string): string {
  return `a pod has been waiting for more than ${PATIENCE_SECONDS} s for ${what} sandbox or, on nodes before Kubernetes 1.36, its image`;
}

/** When the first of the pods will have been prepared for too long; nothing where one has already, or none is. */
export function nextSlowStart(pods: readonly KeptPod[], now: Date): Date | undefined {
  const first = Math.min(...ends(pods));
  return Number.isFinite(first) && first > now.getTime() ? new Date(first) : undefined;
}

/** Until when each of them is taken to be on its way, in milliseconds. */
function ends(pods: readonly KeptPod[]): number[] {
  return pods
    .flatMap(({ startingSince }) => startingSince ?? [])
    .map((since) => Date.parse(since) + PATIENCE_SECONDS * 1_000)
    .filter((end) => !Number.isNaN(end));
}

/** What has to be there for the files to be mounted. */
function mountedObjects({ files = [], serviceAccountName = 'default' }: AppServiceSpec): string[] {
  return [...new Set(files.flatMap((file) => mountedObject(file, serviceAccountName)))].sort();
}

function mountedObject(
  { configMap, secret, persistentVolumeClaim, token }: FileMount,
  account: string,
): string[] {
  if (configMap && !configMap.optional) return [`ConfigMap "${configMap.name}"`];
  if (secret && !secret.optional) return [`Secret "${secret.name}"`];
  if (persistentVolumeClaim) return [`PersistentVolumeClaim "${persistentVolumeClaim.claimName}"`];
  return token ? [`ServiceAccount "${account}"`] : [];
}

function describeCommand(cr: Resource): string {
  const { name, namespace = '' } = cr.metadata;
  const [[label, value] = ['', '']] = Object.entries(selectorLabels(cr, name));
  return `kubectl describe pods --namespace ${namespace} --selector ${label}=${value}`;
}
