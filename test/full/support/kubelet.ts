/** As Kubernetes writes times: whole seconds. */
export const secondsAgo = (seconds: number): string =>
  new Date(Date.now() - seconds * 1_000).toISOString().replace(/\.\d+Z$/, 'Z');

function conditions(status: 'True' | 'False', since: string): object[] {
  const kubelets = ['PodReadyToStartContainers', 'ContainersReady', 'Ready'];
  return [
    ...kubelets.map((type) => ({ type, status, lastTransitionTime: since })),
    { type: 'Initialized', status: 'True', lastTransitionTime: since },
  ];
}

/** The status of a pod whose volumes are being mounted, or whose sandbox is being made. */
export function preparing(name: string, image: string, since: string): object {
  const state = { waiting: { reason: 'ContainerCreating' } };
  return {
    phase: 'Pending',
    startTime: since,
    conditions: conditions('False', since),
    containerStatuses: [{ name, image, imageID: '', ready: false, restartCount: 0, started: false, state }],
  };
}

/** The status of a pod that is Ready. */
export function running(name: string, image: string, since: string): object {
  const state = { running: { startedAt: since } };
  return {
    phase: 'Running',
    conditions: conditions('True', since),
    containerStatuses: [{ name, image, imageID: '', ready: true, restartCount: 0, started: true, state }],
  };
}
