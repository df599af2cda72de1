import { hash } from 'node:crypto';
import type { V1Volume, V1VolumeMount } from '@kubernetes/client-node';
import { given } from './given.js';
import type { FileMount, ObjectFiles } from './spec.js';
import type { Wire } from './wire.js';

/** The file that holds a service account's token, below the path of its mount; as in the token that is mounted by default. */
const TOKEN_FILE = 'token';

/** The volumes behind the files, one for each path; in the order of the paths, as the mounts are. */
export function volumes(files: readonly FileMount[]): Wire<V1Volume>[] {
  return inOrder(files).map((file) => ({ name: volumeName(file.path), ...source(file) }));
}

/** Where they are mounted: read-only unless told otherwise, but for an emptyDir, which would stay empty. */
export function volumeMounts(files: readonly FileMount[]): Wire<V1VolumeMount>[] {
  return inOrder(files).map(({ path, emptyDir, readOnly = !emptyDir }) => ({
    name: volumeName(path),
    mountPath: path,
    ...(readOnly && { readOnly }),
  }));
}

/**
 * Says the path in readable form, and its hash, which tells apart what looks the same in that form. Made of nothing
 * but the path, so that a volume keeps its name whatever is added, removed or moved around it.
 */
export function volumeName(path: string): string {
  const words = path.toLowerCase().match(/[a-z0-9]+/g) ?? [];
  const readable = words.join('-').slice(0, 40).replace(/-$/, '');
  return [...(readable ? [readable] : []), hash('sha256', path, 'hex').slice(0, 16)].join('-');
}

/** By path: in a pod's template the order counts, and two lists that mean the same must not restart anything. */
function inOrder(files: readonly FileMount[]): FileMount[] {
  return [...files].sort((a, b) => (a.path < b.path ? -1 : 1));
}

function source(file: FileMount): Omit<Wire<V1Volume>, 'name'> {
  const { configMap, secret, emptyDir, persistentVolumeClaim, token } = file;
  if (configMap) return { configMap: { name: configMap.name, ...keys(configMap) } };
  if (secret) return { secret: { secretName: secret.name, ...keys(secret) } };
  if (persistentVolumeClaim) return { persistentVolumeClaim };
  if (token) return { projected: { sources: [{ serviceAccountToken: { path: TOKEN_FILE, ...token } }] } };
  // What Kubernetes itself makes of a volume without a source.
  return { emptyDir: emptyDir ?? {} };
}

function keys(files: ObjectFiles): Pick<ObjectFiles, 'items' | 'defaultMode' | 'optional'> {
  return given(files, 'items', 'defaultMode', 'optional');
}
