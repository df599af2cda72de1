import { expect } from 'vitest';
import { statusFieldManager } from '../../src/contract/names.js';
import { describeRef, refOf } from '../../src/contract/object.js';
import type { AnyObject, KubernetesObject } from '../../src/contract/object.js';
import { groupKind, resourceType } from '../../src/contract/resource.js';
import type { ResourceType } from '../../src/contract/resource.js';
import { collection, deployments, eventually } from '../support/cluster.js';
import type { ExampleStand } from '../support/example-stand.js';
import { CHART_MANAGER } from '../support/streams.js';
import { appliedEntriesOf, ownedBy } from '../support/subject.js';
import type { ManagedFieldsEntry } from '../support/subject.js';
import type { Release } from './release.js';

/** The UIDs of the release, by which owners are named, and those that their likes have here. */
type Uids = ReadonlyMap<string, string>;

/**
 * Makes a cluster what the release has left it as: custom resources, what each manager has applied, and then, once
 * Kubernetes has made of it what it makes, the statuses.
 * @throws where an object isn't owned as it was
 */
export async function restore(stand: ExampleStand, { customResources, applied }: Release): Promise<void> {
  const uids = new Map<string, string>();
  for (const cr of customResources) {
    const { name, namespace, labels, annotations, uid } = cr.metadata;
    const { apiVersion, kind, spec } = cr as AnyObject;
    const metadata = { name, namespace, labels, annotations } as AnyObject['metadata'];
    const made = await stand.cluster.create(typeOf(stand, cr), { apiVersion, kind, metadata, spec });
    uids.set(uid!, made.metadata.uid!);
  }
  for (const object of applied) await restoreApplied(stand, object, uids);
  await deploymentsDone(stand);
  await stand.openGatewayPorts(customResources);
  for (const cr of customResources as readonly AnyObject[]) if (cr.status) await restoreStatus(stand, cr);
}

async function restoreApplied(stand: ExampleStand, object: AnyObject, uids: Uids): Promise<void> {
  // What is shared has been made by others already, as they make it for every test.
  const entries = appliedEntriesOf(object).filter(({ manager }) => manager !== CHART_MANAGER);
  // What belongs to somebody is made by whoever says so, and the rest in the order of time.
  const owns = ({ fieldsV1 }: ManagedFieldsEntry): boolean =>
    JSON.stringify(fieldsV1).includes('"k:{\\"uid\\"');
  const ordered = [...entries.filter(owns), ...entries.filter((entry) => !owns(entry))];
  let live: AnyObject | undefined;
  for (const entry of ordered) {
    const body = withUids(ownedBy(entry, object), uids);
    live = await apply(stand, typeOf(stand, object), body, entry.manager);
  }
  const wanted = withUids(entries.map(summaryOf), uids);
  expect(appliedEntriesOf(live!).map(summaryOf), describeRef(refOf(object))).toEqual(
    expect.arrayContaining(wanted),
  );
}

function summaryOf({ manager, fieldsV1 }: ManagedFieldsEntry): object {
  return { manager, fieldsV1 };
}

function withUids<T>(value: T, uids: Uids): T {
  const text = [...uids].reduce((changed, [from, to]) => changed.replaceAll(from, to), JSON.stringify(value));
  return JSON.parse(text) as T;
}

async function restoreStatus(
  stand: ExampleStand,
  { apiVersion, kind, metadata, status }: AnyObject,
): Promise<void> {
  const { name, namespace } = metadata;
  const body = { apiVersion, kind, metadata: { name, namespace }, status } as AnyObject;
  await apply(stand, typeOf(stand, body), body, statusFieldManager(kind), '/status');
}

async function apply(
  { cluster }: ExampleStand,
  type: ResourceType,
  body: AnyObject,
  fieldManager: string,
  subresource = '',
): Promise<AnyObject> {
  const { namespace, name } = body.metadata;
  const answer = await cluster.send('PATCH', `${collection(type, namespace)}/${name}${subresource}`, {
    ...{ body, contentType: 'application/apply-patch+yaml', query: { fieldManager, force: 'true' } },
  });
  expect(answer.status, String(answer.body.message)).toBeLessThan(300);
  return { ...answer.body, apiVersion: type.apiVersion, kind: type.kind };
}

function typeOf({ kinds }: ExampleStand, object: KubernetesObject): ResourceType {
  const own = kinds.find(({ type }) => groupKind(type) === groupKind(object));
  return own?.type ?? resourceType(object);
}

interface DeploymentState {
  readonly spec: { readonly replicas?: number };
  readonly status?: { readonly observedGeneration?: number; readonly updatedReplicas?: number };
}

/** Waits until all Pods have been made, whether or not they can run. */
async function deploymentsDone(stand: ExampleStand): Promise<void> {
  await eventually(async () => {
    for (const deployment of await stand.all(deployments)) {
      const { spec, status = {} } = deployment as unknown as DeploymentState;
      const { updatedReplicas = 0, observedGeneration } = status;
      expect({ updatedReplicas, observedGeneration }, describeRef(refOf(deployment))).toEqual({
        ...{ updatedReplicas: spec.replicas, observedGeneration: deployment.metadata.generation },
      });
    }
  });
}
