import { type ApiAccess, callApi } from './api.js';

/** Claims that can have a volume at the same time; a claim beyond them waits until one is given back. */
const COUNT = 64;

/**
 * Makes volumes for claims that name no storage class: nothing is ever mounted. A volume whose claim goes is free again, by a
 * stage of kwok.
 */
export async function addVolumes(access: ApiAccess): Promise<void> {
  const names = Array.from({ length: COUNT }, (_, index) => `volume-${index}`);
  await Promise.all(
    names.map(async (name) => {
      const path = '/api/v1/persistentvolumes';
      const { status, body } = await callApi(access, 'POST', path, volumeManifest(name));
      if (status !== 201) throw new Error(`The volume ${name} cannot be made (HTTP ${status}): ${body}`);
    }),
  );
}

function volumeManifest(name: string): object {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name, labels: { sandbox: 'volume' } },
    spec: {
      accessModes: ['ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany'],
      capacity: { storage: '100Ti' },
      persistentVolumeReclaimPolicy: 'Retain',
      hostPath: { path: '/never-mounted' },
    },
  };
}
