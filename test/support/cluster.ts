import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { parse, stringify } from 'yaml';
import type { SandboxClient } from '../../sandbox/client.js';
import { paths } from '../../sandbox/layout.js';
import { kubeconfigFor } from '../../sandbox/users.js';
import { resourceType } from '../../src/contract/resource.js';
import type { ResourceType } from '../../src/contract/resource.js';
import { accountToken, grantObjects, heldRights, identityOf, tokenOf } from '../../src/testing/account.js';
import type { Grant } from '../../src/testing/account.js';
import { Cluster as ClusterOfKit, collection } from '../../src/testing/cluster.js';
import type { Answer, Method, Place, RequestOptions } from '../../src/testing/cluster.js';
import { eventually } from '../../src/testing/eventually.js';

export { eventually } from '../../src/testing/eventually.js';
export type { EventuallyOptions } from '../../src/testing/eventually.js';
export { accountKubeconfig, accountToken, grant, identityOf, installCrd } from '../../src/testing/account.js';
export { collection } from '../../src/testing/cluster.js';
export type { Answer, DeleteOptions, Manifest, Place } from '../../src/testing/cluster.js';

const typeOf = (apiVersion: string, kind: string, namespaced = true): ResourceType =>
  resourceType({ apiVersion, kind, namespaced });

export const deployments = typeOf('apps/v1', 'Deployment');
export const services = typeOf('v1', 'Service');
export const configMaps = typeOf('v1', 'ConfigMap');
export const secrets = typeOf('v1', 'Secret');
export const pods = typeOf('v1', 'Pod');
export const jobs = typeOf('batch/v1', 'Job');
export const serviceAccounts = typeOf('v1', 'ServiceAccount');
export const events = typeOf('events.k8s.io/v1', 'Event');
export const endpointSlices = typeOf('discovery.k8s.io/v1', 'EndpointSlice');
export const autoscalers = typeOf('autoscaling/v2', 'HorizontalPodAutoscaler');
export const httpRoutes = typeOf('gateway.networking.k8s.io/v1', 'HTTPRoute');
export const namespaceType = typeOf('v1', 'Namespace', false);

/** The cluster of the testing kit; operators under test are known by short names, in its audit log too. */
export class Cluster extends ClusterOfKit {
  constructor(sandbox: SandboxClient) {
    const { dir, url, etcdUrl, adminKubeconfig, kubectlPath, auditLogPath } = sandbox;
    super({
      ...{ dir, url, etcdUrl, adminKubeconfig, kubectlPath, auditLogPath },
      kubeconfig: (user) => sandbox.kubeconfig(user),
      kubectl: (args, options) => sandbox.kubectl(args, options),
      audit: (user) => sandbox.audit(identityOf(user)),
    });
  }

  override send(
    method: Method,
    path: string,
    { impersonate, ...options }: RequestOptions = {},
  ): Promise<Answer> {
    const user = impersonate === undefined ? {} : { impersonate: identityOf(impersonate) };
    return super.send(method, path, { ...options, ...user });
  }
}

/** Writes a status as the controller of that object would. @throws where the API server refuses it */
export async function putStatus(
  cluster: Cluster,
  { type, namespace, name }: Place,
  status: object,
): Promise<void> {
  const path = `${collection(type, namespace)}/${name}/status`;
  const contentType = 'application/merge-patch+json';
  const answer = await cluster.send('PATCH', path, { body: { status }, contentType });
  if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${String(answer.body.message)}`);
}

export interface KubeconfigProps {
  /** Its server. @default - the API server */
  readonly server?: string;
  /** Namespace of its context, which is the operator's own. @default default */
  readonly namespace?: string;
  /** @default - the ServiceAccount of the operator of this name */
  readonly account?: { readonly namespace: string; readonly name: string };
}

/** Writes a kubeconfig for an operator, as its Pod has one, that differs in this. Returns its path. */
export async function kubeconfigOf(
  cluster: Cluster,
  user: string,
  { server, namespace, account }: KubeconfigProps,
): Promise<string> {
  const token = await (account ? tokenOf(cluster, account) : accountToken(cluster, user));
  const ca = readFileSync(paths(cluster.sandbox).ca, 'utf8');
  const url = server ?? cluster.sandbox.url;
  const config = parse(kubeconfigFor({ url, ca }, { name: identityOf(user), token })) as {
    readonly contexts: readonly [{ readonly context: object }];
  };
  if (namespace !== undefined) Object.assign(config.contexts[0].context, { namespace });
  const path = paths(cluster.sandbox).kubeconfig(`${user}-${namespace ?? 'changed'}`);
  await writeFile(path, stringify(config), { mode: 0o600 });
  return path;
}

/** Takes away what an operator was granted, and waits until none of these rights holds: nothing else gives any of them. */
export async function revoke(cluster: Cluster, given: Grant): Promise<void> {
  const { user } = given;
  const objects = grantObjects(given);
  for (const { apiVersion, kind, metadata } of objects.filter((object) => !object.rules)) {
    const { name, namespace } = metadata;
    const type = typeOf(apiVersion, kind, namespace !== undefined);
    await cluster.delete({ type, name, ...(namespace !== undefined && { namespace }) });
  }
  await eventually(async () => {
    const held = await Promise.all(
      objects.map(({ metadata, rules = [] }) => heldRights(cluster, user, rules, metadata.namespace)),
    );
    if (held.flat().length > 0) throw new Error(`${user} still may ${held.flat().join(', ')}`);
  });
}

/** The node ports that the examples name exist once in a cluster: those that apply them take turns. */
export async function withFixedNodePorts(cluster: Cluster, use: () => Promise<void>): Promise<void> {
  const lock = { type: configMaps, namespace: 'default', name: 'fixed-node-ports' };
  const metadata = { name: lock.name, namespace: lock.namespace };
  const claim = { apiVersion: 'v1', kind: 'ConfigMap', metadata };
  await eventually(() => cluster.create(configMaps, claim), { deadlineMilliseconds: 240_000 });
  try {
    await use();
  } finally {
    await cluster.delete(lock);
  }
}

/** Does something for each, some at once, so that the API server isn't flooded. */
export async function inBatches<T, R>(
  items: readonly T[],
  act: (item: T, index: number) => Promise<R>,
  size = 16,
): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < items.length) {
      const index = next++;
      results[index] = await act(items[index]!, index);
    }
  };
  await Promise.all(Array.from({ length: size }, work));
  return results;
}

const admissionVersion = 'admissionregistration.k8s.io/v1';
const admissionPolicies = typeOf(admissionVersion, 'ValidatingAdmissionPolicy', false);
const admissionBindings = typeOf(admissionVersion, 'ValidatingAdmissionPolicyBinding', false);

export interface DenyProps {
  readonly namespace: string;
  readonly group: string;
  readonly resource: string;
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE';
  /** In CEL, true for what is allowed. */
  readonly expression: string;
  readonly message: string;
  /** @default Invalid */
  readonly reason?: string;
  /** A request that is denied then, in a dry run. */
  readonly probe: () => Promise<Answer>;
}

/** Has the API server deny something by an admission policy. Returns how to end that. */
export async function deny(cluster: Cluster, props: DenyProps): Promise<() => Promise<void>> {
  const { namespace, group, resource, operation, expression, message, reason = 'Invalid', probe } = props;
  const name = `${namespace}-${randomBytes(3).toString('hex')}`;
  const metadata = { name };
  const namespaceSelector = { matchLabels: { 'kubernetes.io/metadata.name': namespace } };
  const rule = { apiGroups: [group], apiVersions: ['v1'], resources: [resource], operations: [operation] };
  await cluster.create(admissionPolicies, {
    ...{ apiVersion: admissionVersion, kind: admissionPolicies.kind, metadata },
    spec: {
      matchConstraints: { namespaceSelector, resourceRules: [rule] },
      validations: [{ expression, reason, message }],
    },
  });
  await cluster.create(admissionBindings, {
    ...{ apiVersion: admissionVersion, kind: admissionBindings.kind, metadata },
    spec: { policyName: name, validationActions: ['Deny'] },
  });
  const isDenied = (wanted: boolean): Promise<void> =>
    eventually(async () => {
      const { status } = await probe();
      if ((status >= 400 && status !== 404) !== wanted)
        throw new Error(`The policy ${name} has yet to be followed: ${status}`);
    });
  await isDenied(true);
  return async () => {
    for (const type of [admissionBindings, admissionPolicies]) await cluster.delete({ type, name });
    await isDenied(false);
  };
}
