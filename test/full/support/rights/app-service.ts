import { expect } from 'vitest';
import type { AnyObject } from '../../../../src/contract/object.js';
import { appService as kind } from '../../../../src/kinds/app-service/kind.js';
import { anyRoute } from '../any-route.js';
import { deployments, services } from '../cluster.js';
import { eventually } from '../eventually.js';
import { Subject } from '../subject.js';
import type { Walk, WalkedKind } from './walk.js';

const plain = { size: 2, image: 'example.com/web:1', resources: { requests: { cpu: '100m' } } };
const everything = {
  ...{ ...plain, ports: [{ port: 80 }] },
  ...{ autoscaling: { minReplicas: 2, maxReplicas: 3, cpu: 50 }, disruption: {} },
  route: { parentRefs: [{ name: 'edge' }] },
};

/** Makes every child, puts it right, makes it anew, drops it, and looks at what it can't see. */
export const appServiceWalk: WalkedKind = {
  kind,
  surroundings: () => Promise.resolve(anyRoute),
  steps,
  byAdmission: ['update appservices/finalizers.kosmos.io'],
};

async function steps(walk: Walk): Promise<void> {
  const { cluster, namespace } = walk;
  const apps = new Subject(cluster, kind, namespace);
  await apps.create('web', everything);
  await apps.asRendered('web');
  const service = apps.childPlace(services, 'web');
  for (let times = 0; times < 2; times++) {
    await cluster.merge(service, { metadata: { labels: { app: 'other' } } });
    await eventually(async () => {
      expect((await cluster.get(service)).metadata.labels).toMatchObject({ app: 'web' });
    });
  }
  await walk.toldTwice('web', 'DriftCorrected');
  await cluster.delete(service);
  await apps.asRendered('web');
  await apps.edit('web', plain);
  await apps.asRendered('web');

  await walk.unseen(kind.children, async () => {
    await apps.create('unseen', everything);
    await apps.asRendered('unseen');
  });

  await cluster.create(deployments, leftover(namespace, 'left'));
  await apps.create('left', plain);
  await apps.asRendered('left');
}

/** A Deployment that a namesake has left behind. */
function leftover(namespace: string, name: string): AnyObject {
  const { apiVersion, kind: of } = kind.type;
  const gone = { apiVersion, kind: of, name, uid: '00000000-0000-4000-8000-000000000000', controller: true };
  const labels = { app: 'old' };
  const containers = [{ name: 'web', image: 'example.com/old:1' }];
  return {
    ...{ apiVersion: 'apps/v1', kind: 'Deployment' },
    metadata: { name, namespace, ownerReferences: [gone] },
    spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers } } },
  };
}
