import { beforeAll, expect, test } from 'vitest';
import { ROTATE_ANNOTATION, selectorLabels } from '../../src/contract/names.js';
import type { AnyObject } from '../../src/contract/object.js';
import { deployments, eventually, secrets } from '../support/cluster.js';
import type { Cluster } from '../support/cluster.js';
import { loadKind } from '../support/bundle.js';
import { actions, changedPaths, Reconstruct } from '../support/commands.js';
import { startController } from '../support/operator.js';
import type { RunningController } from '../support/operator.js';
import { requestsFromNowOn, settled, summary, writes } from '../support/requests.js';
import { Subject } from '../support/subject.js';
import { ownControlPlane } from '../support/test-clusters.js';

const user = 'operator-54';
const { kind, config } = await loadKind('test/support/kinds/vault.config.mjs');
const upgraded = await loadKind('test/support/kinds/vault-upgraded.config.mjs');
const own = ownControlPlane({ users: [user] });
let cluster: Cluster;
let vaults: Subject;
let operator: RunningController;
/** Output of each process that was started, and of each command. */
const outputs: (() => unknown)[] = [];
/** Every value that was ever seen, encoded and as it is. */
const seen = new Set<string>();

beforeAll(async () => {
  ({ cluster } = own);
  vaults = await Subject.make(cluster, kind, 'vaults');
  operator = await start();
});

async function start(given = { kind, config }): Promise<RunningController> {
  const started = await startController({ ...{ cluster, user, kinds: [given.kind], config: given.config } });
  outputs.push(() => [started.log, started.strayOutput]);
  return started;
}

type Values = Readonly<Record<string, string>>;
const place = (name: string) => vaults.childPlace(secrets, `${name}-vault-generated`);

async function valuesOf(name: string): Promise<Values> {
  const { data } = await cluster.get<AnyObject & { data: Values }>(place(name));
  for (const value of Object.values(data)) seen.add(value).add(Buffer.from(value, 'base64').toString());
  return data;
}

async function pods(name: string): Promise<{ checksum: string | undefined; generation: number | undefined }> {
  type Live = AnyObject & { spec: { template: { metadata: { annotations?: Values } } } };
  const { metadata, spec } = await cluster.get<Live>(vaults.childPlace(deployments, name));
  return {
    checksum: spec.template.metadata.annotations?.['checksum/generated'],
    generation: metadata.generation,
  };
}

async function rotate(name: string, token: string | null): Promise<void> {
  await cluster.merge(vaults.place(name), { metadata: { annotations: { [ROTATE_ANNOTATION]: token } } });
}

async function differ(name: string, before: Values): Promise<Values> {
  return eventually(async () => {
    const now = await valuesOf(name);
    for (const key of Object.keys(before)) expect(now[key], key).not.toBe(before[key]);
    return now;
  });
}

async function quiet(): Promise<void> {
  await settled(cluster, user, { namespace: vaults.namespace });
}

test('a password is made once, before what uses it, and outlives edits, drift, bursts of status and restarts', async () => {
  const requests = await requestsFromNowOn(cluster, user, vaults.namespace);
  const cr = await vaults.create('once', {});
  await vaults.ready('once');
  const made = await valuesOf('once');
  const decoded = (key: string): string => Buffer.from(made[key] ?? '', 'base64').toString();
  expect(Object.keys(made).sort()).toEqual(['key', 'password']);
  expect(decoded('password')).toMatch(/^[A-Za-z0-9]{24}$/);
  expect(Buffer.from(decoded('key'), 'base64')).toHaveLength(32);
  const { metadata } = await cluster.get(place('once'));
  expect(metadata.ownerReferences).toMatchObject([{ uid: cr.metadata.uid, controller: true }]);
  const { checksum } = await pods('once');
  expect(checksum).toMatch(/^keyed-[0-9a-f]{32}$/);
  // Made with its checksum, so its Pods weren't replaced.
  expect(await pods('once')).toMatchObject({ generation: 1 });

  await vaults.edit('once', { image: 'example.com/vault:2' });
  await cluster.merge(vaults.childPlace(deployments, 'once'), { spec: { paused: true } });
  await cluster.merge(place('once'), { metadata: { labels: { app: 'other' } } });
  for (let burst = 0; burst < 20; burst++) await vaults.touch('once', String(burst));
  await vaults.ready('once');
  await operator.stop();
  operator = await start();
  await vaults.touch('once', 'again');
  await quiet();
  expect(await valuesOf('once')).toEqual(made);
  expect(await pods('once')).toMatchObject({ checksum });
  const ofSecrets = writes(await requests()).filter(({ objectRef }) => objectRef?.resource === 'secrets');
  expect(ofSecrets.map(summary)).toEqual([`create secrets ${vaults.namespace}/once-vault-generated 201`]);
});

test('the operator reads no Secret but those with its label', async () => {
  const reads = (await cluster.sandbox.audit(user)).filter(
    ({ verb, objectRef }) => objectRef?.resource === 'secrets' && ['get', 'list', 'watch'].includes(verb),
  );
  expect(reads.length).toBeGreaterThan(0);
  const isOwn = ({ uri }: { uri: string }): boolean =>
    /labelSelector=test\.example\.com%2Fvault(&|$)/.test(uri) || /-vault-generated$/.test(uri);
  expect(reads.filter((entry) => !isOwn(entry))).toEqual([]);
});

test('an annotation replaces all values, once for each token, and the Pods with them', async () => {
  await vaults.create('rotated', {});
  await vaults.ready('rotated');
  const first = await valuesOf('rotated');
  const before = await pods('rotated');

  await rotate('rotated', '1');
  const second = await differ('rotated', first);
  await eventually(async () => {
    expect((await pods('rotated')).checksum).not.toBe(before.checksum);
  });
  await quiet();
  const after = await pods('rotated');
  for (const token of ['1', null, '1']) {
    await rotate('rotated', token);
    await vaults.touch('rotated', String(token));
    await quiet();
  }
  expect(await valuesOf('rotated')).toEqual(second);
  expect(await pods('rotated')).toEqual(after);
  await rotate('rotated', '2');
  const third = await differ('rotated', second);
  // As a revert in Git does.
  await rotate('rotated', '1');
  await quiet();
  expect(await valuesOf('rotated')).toEqual(third);
  const notes = (await vaults.events('rotated')).map(({ note }) => note);
  expect(notes).toContain(`Secret rotated-vault-generated: replaced all values, for ${ROTATE_ANNOTATION}=1`);
});

test('a value that is emptied stalls, and nothing is replaced, until it is set or its key removed', async () => {
  await vaults.create('emptied', {});
  await vaults.ready('emptied');
  const first = await valuesOf('emptied');
  await cluster.merge(place('emptied'), { data: { password: '' } });
  const { message } = await vaults.stalled('emptied', 'EmptyValue');
  expect(message).toContain('the value of password is empty');
  await quiet();
  expect((await cluster.get(place('emptied'))).data).toEqual({ ...first, password: '' });
  await cluster.merge(place('emptied'), { data: { password: null } });
  await vaults.ready('emptied');
  expect((await valuesOf('emptied')).password).toMatch(/^.{8,}$/);
});

test('a Secret that is restored from before a rotation is left, until its values are to be kept or made again', async () => {
  type Restorable = AnyObject & { data: Values };
  await vaults.create('restored', {});
  await vaults.ready('restored');
  await valuesOf('restored');
  const backup = await cluster.get<Restorable>(place('restored'));
  const restore = async (): Promise<void> => {
    const { data, metadata } = backup;
    await cluster.merge(place('restored'), { data, metadata: { annotations: metadata.annotations } });
    const { message } = await vaults.stalled('restored', 'SecretRestored');
    expect(message).toContain(`${ROTATE_ANNOTATION}=1`);
    await operator.stop();
    operator = await start();
    await vaults.touch('restored', 'again');
    await quiet();
    expect(await valuesOf('restored')).toEqual(data);
  };
  const followed = { type: 'Rotated', message: `${ROTATE_ANNOTATION}=1` };
  await rotate('restored', '1');
  await vaults.condition('restored', followed);
  await differ('restored', backup.data);
  await restore();
  await rotate('restored', null);
  await vaults.ready('restored');
  await quiet();
  expect(await valuesOf('restored')).toEqual(backup.data);

  // Asked for again, it is followed; so is another text after that.
  await rotate('restored', '1');
  const second = await differ('restored', backup.data);
  await vaults.condition('restored', followed);
  await restore();
  await rotate('restored', '2');
  await differ('restored', { ...second });
  await differ('restored', backup.data);
  await vaults.ready('restored');
});

test('what is deleted is made again, and only that', async () => {
  await vaults.create('lost', {});
  await vaults.ready('lost');
  const first = await valuesOf('lost');
  const before = await pods('lost');

  await cluster.merge(place('lost'), { data: { key: null } });
  const second = await eventually(async () => {
    const now = await valuesOf('lost');
    expect(now.key).toBeDefined();
    return now;
  });
  expect(second.key).not.toBe(first.key);
  expect(second.password).toBe(first.password);

  await cluster.delete(place('lost'));
  await eventually(async () => {
    expect((await cluster.get(place('lost'))).metadata.uid).toBeDefined();
  });
  await differ('lost', second);
  await eventually(async () => {
    expect((await pods('lost')).checksum).not.toBe(before.checksum);
  });
  await eventually(async () => {
    const notes = (await vaults.events('lost')).map(({ note }) => note);
    expect(notes).toContain('Secret lost-vault-generated: made new values of key');
    expect(notes).toContain('Secret lost-vault-generated: made new values of password, key');
  });
});

test('a Secret of others is left alone until it is handed over, and its values are kept then', async () => {
  const data = { password: Buffer.from('from-before').toString('base64') };
  const { namespace } = vaults;
  const { name } = place('taken');
  await cluster.create(secrets, { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace }, data });
  // Behind it is another one, which shows once the Secret is handed over.
  const labels = selectorLabels(kind.type, 'taken');
  await cluster.create(deployments, {
    ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'taken', namespace } },
    spec: {
      ...{ replicas: 0, selector: { matchLabels: labels } },
      template: { metadata: { labels }, spec: { containers: [{ name: 'vault', image: 'example.com/old' }] } },
    },
  });
  await vaults.create('taken', {});
  await vaults.stalled('taken', 'OwnershipConflict');
  await quiet();
  expect(await valuesOf('taken')).toEqual(data);

  const args = ['--config', config, '-n', namespace];
  const adopt = new Reconstruct('adopt', own.sandbox.adminKubeconfig, args);
  const adopting = await adopt.run('vault/taken', '--yes');
  expect(adopting, adopting.stderr).toMatchObject({ code: 0 });
  expect(adopting.stdout).toContain(`Secret ${namespace}/${name} handed over to Vault/taken\n`);
  expect(adopting.stdout).toContain(`Deployment ${namespace}/taken handed over to Vault/taken\n`);
  for (const value of Object.values(data)) expect(adopting.stdout).not.toContain(value);
  await vaults.touch('taken', 'adopted');
  await vaults.ready('taken');
  expect(await valuesOf('taken')).toMatchObject(data);
  expect(Object.keys(await valuesOf('taken')).sort()).toEqual(['key', 'password']);
});

test('a Secret that is kept is handed over with its values; one that is not goes, and the next has others', async () => {
  await vaults.create('home', {});
  await vaults.ready('home');
  const first = await valuesOf('home');
  await vaults.delete('home', { propagationPolicy: 'Orphan' });
  await eventually(async () => {
    expect((await cluster.get(place('home'))).metadata.ownerReferences).toBeUndefined();
  });
  // As long as others of its children have their owner, it is still there.
  const { metadata } = await eventually(() => vaults.create('home', {}));
  await vaults.stalled('home', 'OwnershipConflict');
  const adopt = new Reconstruct('adopt', own.sandbox.adminKubeconfig, [
    '--config',
    config,
    '-n',
    vaults.namespace,
  ]);
  expect(await adopt.run('vault/home', '--yes')).toMatchObject({ code: 0 });
  await vaults.ready('home');
  expect(await valuesOf('home')).toEqual(first);
  expect((await cluster.get(place('home'))).metadata.ownerReferences).toMatchObject([{ uid: metadata.uid }]);

  await vaults.delete('home');
  await vaults.create('home', {});
  await vaults.ready('home');
  await differ('home', first);
});

test('under a name that is too long for a label, no Secret is made', async () => {
  const name = 'n'.repeat(64);
  await vaults.create(name, {});
  await vaults.stalled(name, 'NameTooLong');
  const names = (await cluster.list(secrets, vaults.namespace)).map(({ metadata }) => metadata.name);
  expect(names).not.toContain(`${name}-vault-generated`);
});

test('two operators at once make one value', async () => {
  const requests = await requestsFromNowOn(cluster, user, vaults.namespace);
  const second = await start();
  const names = Array.from({ length: 10 }, (_, index) => `both-${index}`);
  await Promise.all(names.map(async (name) => vaults.create(name, {})));
  for (const name of names) await vaults.ready(name);
  await quiet();
  await second.stop();
  const done = writes(await requests()).filter(
    ({ objectRef, code = 0 }) => objectRef?.resource === 'secrets' && code < 300,
  );
  expect(done.map(({ verb, objectRef }) => `${verb} ${objectRef?.name ?? ''}`).sort()).toEqual(
    names.map((name) => `create ${name}-vault-generated`),
  );
});

test('diff shows no value and makes none; apply makes them, as the operator does', async () => {
  const cr = (name: string, annotations: Values = {}): object => ({
    ...{ apiVersion: kind.type.apiVersion, kind: 'Vault', spec: {} },
    metadata: { name, namespace: vaults.namespace, annotations },
  });
  const differ = new Reconstruct('diff', cluster.sandbox.adminKubeconfig, ['--config', config]);
  const isNew = await differ.diff([cr('shown')]);
  expect(actions(isNew)).toEqual([
    'created Vault shown',
    'created Secret shown-vault-generated',
    'created Deployment shown',
  ]);
  expect(isNew).toEqual(await differ.diff([cr('shown')]));
  expect(JSON.stringify(isNew)).not.toContain('"data"');

  const before = await valuesOf('rotated');
  expect((await differ.diff([cr('rotated')])).differs).toBe(false);
  const rotated = await differ.diff([cr('rotated', { [ROTATE_ANNOTATION]: 'now' })]);
  expect(changedPaths(rotated)).toContain('Secret .data.password');
  expect(changedPaths(rotated)).toContain(
    'Deployment .spec.template.metadata.annotations["checksum/generated"]',
  );
  expect(await valuesOf('rotated')).toEqual(before);
  outputs.push(() => [isNew, rotated]);

  await operator.stop();
  const applied = await new Reconstruct('apply', cluster.sandbox.adminKubeconfig, ['--config', config]).of([
    cr('by-hand'),
  ]);
  expect(applied, applied.stderr).toMatchObject({ code: 0 });
  await valuesOf('by-hand');
  outputs.push(() => applied);
  const created = ['Vault by-hand', 'Secret by-hand-vault-generated', 'Deployment by-hand'];
  expect(applied.stdout).toBe(
    created.map((what) => `${what.replace(' ', ` ${vaults.namespace}/`)} created\n`).join(''),
  );
  expect((await pods('by-hand')).generation).toBe(1);
});

test('a later release adds a value, keeps the others, and prunes none where it watches all Secrets', async () => {
  const before = await valuesOf('once');
  operator = await start(upgraded);
  await eventually(async () => {
    expect(Object.keys(await valuesOf('once')).sort()).toEqual(['key', 'password', 'pin']);
  });
  await quiet();
  expect(await valuesOf('once')).toMatchObject(before);
});

test('no value is anywhere but in the Secrets', async () => {
  const everything = [
    ...outputs.map((output) => output()),
    await vaults.objects(deployments),
    await cluster.list(kind.type, vaults.namespace),
    await Promise.all(['once', 'rotated', 'lost', 'taken'].map(async (name) => vaults.events(name))),
  ].map((part) => JSON.stringify(part));
  expect(seen.size).toBeGreaterThan(10);
  for (const value of seen) expect(everything.some((part) => part.includes(value))).toBe(false);
});
