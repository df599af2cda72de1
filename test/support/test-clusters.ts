import { afterAll, beforeAll, inject } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import { startSandbox } from '../../sandbox/control-plane.js';
import type { Sandbox, SandboxOptions } from '../../sandbox/control-plane.js';
import { Cluster } from './cluster.js';
import { closeCluster } from './operator.js';

/** Opens the shared control plane for one test file; all that is started in it ends with the file, whatever happens. */
export function openCluster(): Cluster {
  const cluster = new Cluster(openSandbox(inject('sandbox')));
  afterAll(() => closeCluster(cluster));
  return cluster;
}

/** A control plane for one test file alone, once its hooks have run. */
export interface OwnControlPlane {
  readonly sandbox: Sandbox;
  readonly cluster: Cluster;
}

/** Starts a control plane before the tests of a file, and ends it after them with all that was started in it. */
export function ownControlPlane(options: SandboxOptions = {}): OwnControlPlane {
  const running: { sandbox?: Sandbox; cluster?: Cluster } = {};
  beforeAll(async () => {
    running.sandbox = await startSandbox(options);
    running.cluster = new Cluster(running.sandbox);
  });
  afterAll(async () => {
    if (running.cluster) await closeCluster(running.cluster);
    await running.sandbox?.stop();
  });
  return {
    get sandbox() {
      return running.sandbox!;
    },
    get cluster() {
      return running.cluster!;
    },
  };
}
