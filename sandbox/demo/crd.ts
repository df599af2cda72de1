import type { Kubectl } from './kubectl.js';

export const crdName = 'appservices.kosmos.io';

/** Where the AppService CRD lies in the repository. */
const crdFile = 'crds/appservices.kosmos.io.yaml';

/**
 * Installs the CRD, which must not be there, and waits until the API server serves it.
 *
 * @param created is called once it is there, so that it can be removed again
 */
export async function installCrd(kubectl: Kubectl, created?: () => void): Promise<void> {
  await kubectl.demonstrate('create', '-f', crdFile);
  created?.();
  // kubectl fails to wait for a condition while there are none at all, as for a moment after this.
  await kubectl.run('wait', '--for=jsonpath={.status.conditions}', `crd/${crdName}`, '--timeout=30s');
  await kubectl.demonstrate('wait', '--for=condition=Established', `crd/${crdName}`, '--timeout=30s');
  // Also waits for the API server's cache of the new kind, which a watch that comes too early is told to.
  await kubectl.demonstrate('get', 'appservices', '--all-namespaces');
}
