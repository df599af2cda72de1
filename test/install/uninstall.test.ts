import { join } from 'node:path';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { repoFolder } from '../../sandbox/paths.js';
import { loadKinds } from '../../src/cli/config.js';
import { OperatorError } from '../../src/contract/error.js';
import {
  APPLIED_HASH_ANNOTATION,
  finalizerOf,
  recordedFieldManager,
  selectorLabels,
} from '../../src/contract/names.js';
import { groupKind } from '../../src/contract/resource.js';
import type { AnyObject } from '../../src/contract/object.js';
import { applyInstallation, installableKinds } from '../../src/install/apply.js';
import { installManifests } from '../../src/install/manifests.js';
import type { InstallProps } from '../../src/install/props.js';
import { uninstall } from '../../src/install/uninstall.js';
import type { UninstallProps } from '../../src/install/uninstall.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import { streamIngress } from '../../src/kinds/stream-ingress/kind.js';
import { MemoryCluster } from './memory-cluster.js';

const kinds = [appService, jobWatcher, streamIngress];
const props: InstallProps = { namespace: 'ops', image: 'example.com/reconstruct:1', kinds, replicas: 2 };
const managedFields = [{ manager: 'streamingress-controller', operation: 'Apply' }];
const named = (kind: string, namespace: string, name: string, metadata: object = {}): AnyObject => ({
  ...{ apiVersion: 'v1', kind, metadata: { namespace, name, ...metadata } },
});
const resource = (name: string): AnyObject => ({
  ...{ apiVersion: 'kosmos.io/v1', kind: 'AppService', metadata: { namespace: 'shop', name } },
});

let cluster: MemoryCluster;
let reported: string[];

const report = (line: string): void => void reported.push(line);
const install = (changed: Partial<InstallProps> = {}): Promise<void> =>
  applyInstallation({ ...props, ...changed }, cluster, report);

async function remove(changed: Partial<UninstallProps> = {}): Promise<string[]> {
  cluster.writes.length = reported.length = 0;
  await uninstall({ namespace: 'ops', kinds, purge: false, dryRun: false, ...changed }, cluster, report);
  return cluster.writes;
}

const namesLeft = (): string[] => cluster.all.map(({ kind, metadata: { name } }) => `${kind} ${name}`).sort();

beforeEach(() => {
  cluster = new MemoryCluster([
    ...[named('ConfigMap', 'edge', 'tcp', { managedFields }), named('ConfigMap', 'edge', 'foreign')],
    named('Service', 'edge', 'proxy', { managedFields }),
    ...[resource('web'), resource('api')],
  ]);
  reported = [];
});

describe('uninstall', () => {
  it('leaves the cluster as it was, but for the CRDs', async () => {
    const before = namesLeft();
    await install();
    expect(namesLeft().length).toBeGreaterThan(before.length + 10);
    await remove();
    expect(namesLeft()).toEqual(
      [...before, ...kinds.map(({ crd }) => `CustomResourceDefinition ${crd.metadata.name}`)].sort(),
    );
    expect(cluster.writes.filter((write) => write.startsWith('apply'))).toEqual([]);
  });

  it('purges in this order: controller, what is shared, custom resources with what they own, CRDs, the rest', async () => {
    await install();
    const writes = await remove({ purge: true });
    expect(writes.slice(0, 8)).toEqual([
      'delete Deployment ops/reconstruct Foreground',
      'apply Service edge/proxy by streamingress-controller',
      'apply ConfigMap edge/tcp by streamingress-controller',
      'delete AppService shop/web Foreground',
      'delete AppService shop/api Foreground',
      ...kinds.map(({ crd }) => `delete CustomResourceDefinition ${crd.metadata.name} Background`).sort(),
    ]);
    expect(writes.at(-1)).toBe('delete Namespace ops Background');
    expect(namesLeft()).toEqual(['ConfigMap foreign', 'ConfigMap tcp', 'Service proxy']);
  });

  it('purges what custom resources have made elsewhere, and nothing that others have recorded, or that is kept', async () => {
    const [kind] = await loadKinds({
      config: join(repoFolder(), 'examples/listing/reconstruct.config.mjs'),
      builtIn: [],
    });
    const labels = { 'listings.example.com/listing': 'shop' };
    const entry = (name: string, record: string, manager = 'listing-controller:u'): AnyObject =>
      named('ConfigMap', 'catalog', name, {
        labels,
        annotations: { [APPLIED_HASH_ANNOTATION]: `x u ${record}` },
        managedFields: [{ manager, operation: 'Apply' }],
      });
    cluster.put(entry('own', 'Listing.listings.example.com shop/shop'));
    cluster.put(entry('kept', 'Listing.listings.example.com shop/shop kept'));
    cluster.put(entry('forged', 'Listing.listings.example.com shop/shop', 'kubectl'));
    cluster.put(entry('others', 'Widget.example.com shop/shop'));
    await install({ kinds: [kind!] });
    const writes = await remove({ kinds: [kind!], purge: true });
    expect(writes.filter((write) => write.includes('ConfigMap catalog/'))).toEqual([
      expect.stringContaining('ConfigMap catalog/own'),
    ]);
  });

  it('takes the finalizers of its kinds off once the controller is gone, and those of others not', async () => {
    const [kind] = await loadKinds({
      config: join(repoFolder(), 'test/support/kinds/parting.config.mjs'),
      builtIn: [],
    });
    const { apiVersion, kind: name } = kind!.type;
    const finalizers = [finalizerOf(name), 'example.com/other'];
    cluster.put({ apiVersion, kind: name, metadata: { namespace: 'shop', name: 'a', finalizers } });
    await install({ kinds: [kind!] });
    const writes = await remove({ kinds: [kind!] });
    const at = writes.indexOf(`finalizers ${name} shop/a example.com/other`);
    expect(at).toBeGreaterThan(writes.findIndex((write) => write.startsWith('delete Deployment')));
    expect(writes.filter((write) => write.startsWith('finalizers'))).toHaveLength(1);
  });

  it('says in a dry run which finalizers it would take off, and leaves those that another operator serves', async () => {
    const [kind] = await loadKinds({
      ...{ config: join(repoFolder(), 'test/support/kinds/parting.config.mjs'), builtIn: [] },
    });
    const { apiVersion, kind: name } = kind!.type;
    const finalizers = [finalizerOf(name)];
    for (const namespace of ['shop', 'other'])
      cluster.put({ apiVersion, kind: name, metadata: { namespace, name: 'a', finalizers } });
    await install({ kinds: [kind!], watchNamespaces: ['shop'] });
    await install({ kinds: [kind!], watchNamespaces: ['other'], namespace: 'ops-2' });
    expect(await remove({ kinds: [kind!], dryRun: true })).toEqual([]);
    expect(reported).toContain(`${name} shop/a: finalizer ${finalizerOf(name)} would be taken off`);
    const writes = await remove({ kinds: [kind!] });
    expect(writes.filter((write) => write.startsWith('finalizers'))).toEqual([`finalizers ${name} shop/a `]);
  });

  it('purges what was made during a deletion, in the namespace of the custom resource', async () => {
    const [kind] = await loadKinds({
      ...{ config: join(repoFolder(), 'test/support/kinds/parting.config.mjs'), builtIn: [] },
    });
    const { type } = kind!;
    const [child] = ('each' in kind!.rendering && kind!.rendering.each.children) || [];
    const managedFields = [{ manager: recordedFieldManager(type.kind, 'u'), operation: 'Apply' }];
    const annotations = { [APPLIED_HASH_ANNOTATION]: `x u ${groupKind(type)} shop/a` };
    const metadata = { namespace: 'shop', name: 'left', labels: selectorLabels(type, 'a'), annotations };
    cluster.put({ ...child!, metadata: { ...metadata, managedFields } as AnyObject['metadata'] });
    await install({ kinds: [kind!] });
    const writes = await remove({ kinds: [kind!], purge: true });
    expect(writes.filter((write) => write.includes('shop/left'))).toHaveLength(1);
  });

  it('purges nothing where custom resources can not be listed', async () => {
    await install();
    const list = cluster.list.bind(cluster);
    const forbidden = new OperatorError({ reason: 'Forbidden', message: 'no list of appservices' });
    vi.spyOn(cluster, 'list').mockImplementation(async (type, ...rest) =>
      type.kind === 'AppService' ? Promise.reject(forbidden) : list(type, ...rest),
    );
    await expect(remove({ purge: true })).rejects.toThrow('no list of appservices');
    expect(cluster.writes).toEqual([]);
  });

  it('takes the lease, and keeps a namespace that it has not made', async () => {
    cluster.put({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'ops' } });
    await install();
    expect(reported).toContain('Namespace ops left as it is');
    const lease = named('Lease', 'ops', 'reconstruct');
    cluster.put({ ...lease, apiVersion: 'coordination.k8s.io/v1' });
    expect(await remove()).toContain('delete Lease ops/reconstruct Background');
    expect(namesLeft()).toContain('Namespace ops');
  });

  it('in a dry run writes nothing, counts what would go, and names no more than twenty of a kind', async () => {
    await install();
    for (let n = 0; n < 25; n++) cluster.put(resource(`more-${n}`));
    cluster.writes.length = reported.length = 0;
    const going = await uninstall({ namespace: 'ops', kinds, purge: true, dryRun: true }, cluster, report);
    expect(cluster.writes).toEqual([]);
    expect(going.get('AppService')).toBe(27);
    expect(reported.filter((line) => line.startsWith('AppService'))).toHaveLength(21);
    expect(reported).toContain('AppService: 7 more would be deleted');
    expect(reported).toContain('Service edge/proxy would be released from streamingress-controller');
    expect(reported.at(-1)).toBe('Namespace ops would be deleted');
  });

  it.each([
    ["where an object can't do without what is ours", 'Invalid'],
    ['where a policy denies that', 'Refused'],
  ])('does all the rest %s, and then says so', async (_, reason) => {
    await install();
    const apply = cluster.apply.bind(cluster);
    cluster.apply = (type, object, options) =>
      object.kind === 'Service'
        ? Promise.reject(new OperatorError({ reason, message: 'spec.ports: Required value' }))
        : apply(type, object, options);
    await expect(remove({ purge: true })).rejects.toThrow('spec.ports: Required value');
    expect(reported).not.toContain('Service edge/proxy released from streamingress-controller');
    expect(reported).toContain('ConfigMap edge/tcp released from streamingress-controller');
    expect(namesLeft()).toEqual(['ConfigMap foreign', 'ConfigMap tcp', 'Service proxy']);
  });
});

describe('the namespace of the operator', () => {
  it('stays where an API could not be looked at, and says which', async () => {
    await install();
    cluster.unseen.push('metrics.k8s.io/v1beta1');
    await remove({ dryRun: true });
    expect(reported.at(-1)).toBe(
      "Namespace ops would stay, since metrics.k8s.io/v1beta1 couldn't be looked at",
    );
    await remove();
    expect(reported.at(-1)).toBe("Namespace ops stays, since metrics.k8s.io/v1beta1 couldn't be looked at");
    expect(namesLeft()).toContain('Namespace ops');
  });
});

describe('what happens while it purges', () => {
  /** Does something once, right before such a write. */
  function before(write: 'apply' | 'delete', name: string, happens: () => void): void {
    const original = cluster[write].bind(cluster) as (...args: unknown[]) => Promise<never>;
    let isOver = false;
    cluster[write] = (...args: unknown[]) => {
      if (!isOver && (args[1] as AnyObject).metadata.name === name) {
        isOver = true;
        happens();
      }
      return original(...args);
    };
  }

  it('is seen, where the controller wrote it before it was gone', async () => {
    await install();
    before('delete', 'reconstruct', () => {
      cluster.put(named('ConfigMap', 'edge', 'udp', { managedFields }));
      cluster.put(resource('late'));
    });
    const writes = await remove({ purge: true });
    expect(writes).toContain('apply ConfigMap edge/udp by streamingress-controller');
    expect(writes).toContain('delete AppService shop/late Foreground');
  });

  it('is no reason to give up, where a shared object has gone', async () => {
    await install();
    before('apply', 'tcp', () => {
      cluster.remove(named('ConfigMap', 'edge', 'tcp'));
    });
    const writes = await remove({ purge: true });
    expect(writes).toContain('apply Service edge/proxy by streamingress-controller');
    expect(namesLeft()).toEqual(['ConfigMap foreign', 'Service proxy']);
  });
});

describe('applyInstallation', () => {
  it('changes nothing where something of others is in the way', async () => {
    cluster.put(named('ServiceAccount', 'ops', 'reconstruct'));
    await expect(install()).rejects.toMatchObject({
      reason: 'OwnershipConflict',
      message: expect.stringContaining('ServiceAccount ops/reconstruct exists') as string,
    });
    expect(cluster.writes).toEqual([]);
  });

  it('waits for what is being deleted, and writes nothing until then', async () => {
    await install();
    const home = cluster.all.find(({ kind }) => kind === 'Namespace')!;
    cluster.put({ ...home, metadata: { ...home.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } });
    cluster.writes.length = 0;
    await expect(install()).rejects.toThrow('In vain until Namespace ops, which is being deleted, is gone');
    expect(cluster.writes).toEqual([]);
  });

  it('waits until the CRDs are served before it goes on', async () => {
    const crd = appService.crd as unknown as AnyObject;
    cluster.put = function (object) {
      const stored = { ...object, ...(object.kind === crd.kind && { status: { conditions: null } }) };
      return MemoryCluster.prototype.put.call(this, stored);
    };
    await expect(install()).rejects.toThrow(`In vain until the API server serves ${crd.metadata.name}`);
    expect(cluster.writes.at(-1)).toMatch(/^apply CustomResourceDefinition/);
  });

  it('refuses to look after what another operator looks after, and nothing else', async () => {
    await install({ namespace: 'first', kinds: [appService], watchNamespaces: ['a', 'b'] });
    await expect(install({ kinds: [appService], watchNamespaces: ['b'] })).rejects.toMatchObject({
      reason: 'AlreadyInstalled',
    });
    await expect(install({ kinds })).rejects.toMatchObject({ reason: 'AlreadyInstalled' });
    await install({ kinds: [appService], watchNamespaces: ['c'] });
    await install({ kinds: [jobWatcher], namespace: 'third' });
    await expect(remove({ purge: true })).rejects.toMatchObject({ reason: 'StillInUse' });
  });
});

describe('an operator that Helm has installed', () => {
  const annotations = { 'meta.helm.sh/release-name': 'mine' };

  /** Stores what `install` makes as Helm labels it. */
  function release(changed: Partial<InstallProps> = {}): void {
    for (const { metadata, ...object } of installManifests({ ...props, namespace: 'first', ...changed })) {
      const labels = { ...metadata.labels, 'app.kubernetes.io/managed-by': 'Helm' };
      cluster.put({ ...object, metadata: { ...metadata, labels, annotations } });
    }
  }

  beforeEach(() => {
    release();
  });

  it('may not write into the objects of another one', async () => {
    for (const object of cluster.all.filter(({ kind }) => kind === 'Deployment')) cluster.remove(object);
    release({ kinds: [streamIngress], watchNamespaces: ['a'] });
    await expect(install({ kinds: [streamIngress], watchNamespaces: ['b'] })).rejects.toMatchObject({
      reason: 'AlreadyInstalled',
      message: expect.stringContaining('with watchNamespaces a,b, or') as string,
    });
  });
});

describe('two operators for different namespaces', () => {
  const one = { namespace: 'first', kinds: [streamIngress], watchNamespaces: ['a'] };
  const other = { namespace: 'second', kinds, watchNamespaces: ['b'] };

  it('may not write into the same object of a third one', async () => {
    await install(one);
    const before = cluster.writes.length;
    await expect(install(other)).rejects.toMatchObject({
      reason: 'AlreadyInstalled',
      message: expect.stringMatching(
        /^The operator in the namespace first writes for streamingress\.\S+ to services ingress-nginx\/ingress-nginx-controller too, .* with --watch-namespace a,b, or .*policy$/,
      ) as string,
    });
    expect(cluster.writes).toHaveLength(before);
  });

  it('may have a proxy each, in different namespaces or in one, and other kinds', async () => {
    await install(one);
    await install({ ...other, flags: { '--ingress-namespace': 'edge' } });
    const flags = {
      ...{ '--ingress-service': 'third', '--tcp-services-configmap': 'tcp3' },
      ...{ '--udp-services-configmap': 'udp3' },
    };
    await install({ ...other, namespace: 'third', watchNamespaces: ['c'], flags });
    // It may write every Service there, for AppServices.
    const watched = { watchNamespaces: ['ingress-nginx'], flags: { '--ingress-namespace': 'fourth' } };
    await install({ ...other, namespace: 'fourth', ...watched });
    await install(one);
  });
});

describe('installableKinds', () => {
  const choose = (mayLeaveOut: boolean, changed: Partial<InstallProps> = {}): Promise<readonly string[]> =>
    installableKinds({ ...props, ...changed }, cluster, mayLeaveOut, report).then((chosen) =>
      chosen.map(({ name }) => name),
    );

  it('leaves out what needs a namespace that is not there, and says so', async () => {
    expect(await choose(true)).toEqual(['appservice', 'jobwatcher']);
    expect(reported).toEqual([expect.stringContaining('needs rights in the namespace ingress-nginx')]);
    cluster.put({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'ingress-nginx' } });
    expect(await choose(false)).toHaveLength(3);
  });

  it('refuses where that was asked for, or nothing would be left', async () => {
    await expect(choose(false)).rejects.toMatchObject({ reason: 'NamespaceMissing' });
    await expect(choose(true, { kinds: [streamIngress] })).rejects.toThrow('No kind is left');
    await expect(choose(true, { watchNamespaces: ['a'] })).rejects.toThrow('There is no namespace a:');
  });
});
