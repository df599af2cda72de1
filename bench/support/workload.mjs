// What is created: AppServices of one port, and the children that they become.
import { hash } from 'node:crypto';
import { render } from '../../lib/render/renderer.js';
import { appService, CONCURRENCY, deployment, headOf, service } from './cluster.mjs';
import { each } from './util.mjs';
import { Witness } from './witness.mjs';

export const IMAGE = 'registry.example.com/web:1';

export function customResources(namespace, count, size) {
  return Array.from({ length: count }, (_, index) => ({
    ...headOf(appService.type),
    metadata: { namespace, name: `web-${index}` },
    spec: { size, image: IMAGE, ports: [{ name: 'http', port: 80, targetPort: 8080 }] },
  }));
}

/** The Deployment and the Service, with what the controller adds: the annotation, and the owner where it has a UID. */
export function childrenOf(cr) {
  return render(appService, cr).map((object) => ({
    ...object,
    metadata: {
      ...object.metadata,
      ...(cr.metadata.uid && { ownerReferences: [ownerReference(cr)] }),
      annotations: {
        'reconstruct.kosmos.io/applied-hash': hash('sha256', JSON.stringify(object)).slice(0, 32),
      },
    },
  }));
}

function ownerReference({ apiVersion, kind, metadata: { name, uid } }) {
  return { apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true };
}

export function typeOf(child) {
  return child.kind === deployment.kind ? deployment : service;
}

/** @param then is given each, as the API server has stored it */
export async function createAll(cluster, crs, then) {
  await each(crs, CONCURRENCY, async (cr) => {
    const created = await cluster.create(appService.type, cr);
    then?.(created);
  });
}

export async function applyChildren(cluster, cr) {
  for (const child of childrenOf(cr)) await cluster.apply(typeOf(child), child, 'raw');
}

/** Watches both types of children. */
export async function witnessChildren(cluster, namespace) {
  const [deployments, services] = await Promise.all(
    [deployment, service].map((type) => Witness.of(cluster, type, namespace)),
  );
  return {
    deployments,
    services,
    /** When that many of each were first seen. */
    complete: async (count) =>
      Math.max(
        ...(await Promise.all(
          [deployments, services].map((witness) => witness.until(() => witness.objects.size >= count)),
        )),
      ),
    stop: () => Promise.all([deployments.stop(), services.stop()]),
  };
}

/** Runs work as it is handed in, so much at once: the second half of a pipeline. */
export class Pool {
  #free = CONCURRENCY;
  #waiting = [];
  #running = new Set();

  constructor(work) {
    this.work = work;
  }

  add(item) {
    if (this.#free === 0) {
      this.#waiting.push(item);
      return;
    }
    this.#free--;
    const run = this.work(item).then(() => {
      this.#free++;
      this.#running.delete(run);
      if (this.#waiting.length > 0) this.add(this.#waiting.shift());
    });
    this.#running.add(run);
  }

  async drained() {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }
}
