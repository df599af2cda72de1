import { collection } from './cluster.js';
import type { Cluster, Place } from './cluster.js';

/** An object in every event since a version, oldest first; what the API server has forgotten by now is left out. */
export async function historyOf<T>(
  cluster: Cluster,
  { type, namespace, name }: Place,
  resourceVersion: string,
): Promise<T[]> {
  const query = {
    watch: 'true',
    resourceVersion,
    timeoutSeconds: '1',
    fieldSelector: `metadata.name=${name}`,
  };
  const { body } = await cluster.send('GET', collection(type, namespace), { query });
  // One event is JSON, several are lines of it.
  const lines = typeof body.message === 'string' ? body.message.trim().split('\n') : [JSON.stringify(body)];
  return lines.filter((line) => line !== '').map((line) => (JSON.parse(line) as { object: T }).object);
}
