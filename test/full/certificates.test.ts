import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect, createServer } from 'node:tls';
import { expect, test } from 'vitest';
import type { AnyObject } from '../../src/contract/object.js';
import { issueCertificate } from '../../src/values/x509.js';
import { loadKind } from '../support/bundle.js';
import { configMaps, eventually, secrets } from '../support/cluster.js';
import { Reconstruct } from '../support/commands.js';
import { startController } from '../support/operator.js';
import type { RunningController } from '../support/operator.js';
import { requestsFromNowOn, settled, summary, writes } from '../support/requests.js';
import { Subject } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';

const cluster = openCluster();
const user = 'operator-63';

/** A TLS server with a certificate, asked by a client that knows authorities. @returns why the client doesn't trust it, if so */
async function handshake(
  { 'tls.crt': cert, 'tls.key': key }: Readonly<Record<string, string>>,
  ca: string | undefined,
  servername = 'web.test',
): Promise<string | undefined> {
  const server = createServer({ cert, key });
  server.on('tlsClientError', () => undefined);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const client = connect({ ...{ host: '127.0.0.1', port, servername }, ca: ca ?? '' });
  try {
    await once(client, 'secureConnect');
    return undefined;
  } catch (error) {
    return (error as { code?: string }).code;
  } finally {
    client.destroy();
    server.close();
  }
}

test('a certificate is issued, verified, renewed in time, and replaced, by what is stored alone', async () => {
  const { kind, config } = await loadKind('test/support/kinds/certified.config.mjs');
  const sites = await Subject.make(cluster, kind, 'sites');
  const props = { ...{ cluster, user, kinds: [kind], config }, namespaces: [sites.namespace] };
  const controllers: RunningController[] = [];
  const start = async (): Promise<RunningController> => {
    controllers.push(await startController(props));
    return controllers.at(-1)!;
  };
  let controller = await start();
  const place = sites.childPlace(secrets, 'web-tls');
  const seen = new Set<string>();
  const read = async (): Promise<Readonly<Record<string, string>>> => {
    const { data, type } = await cluster.get<AnyObject & { data: Record<string, string>; type: string }>(
      place,
    );
    expect(type).toBe('kubernetes.io/tls');
    const texts = Object.entries(data).map(([key, text]) => [key, Buffer.from(text, 'base64').toString()]);
    const decoded = Object.fromEntries(texts) as Readonly<Record<string, string>>;
    for (const key of ['tls.key', 'ca.key'])
      seen.add(data[key]!.slice(0, -4)).add(decoded[key]!.split('\n')[2]!).add(decoded[key]!.split('\n')[1]!);
    return decoded;
  };
  const checksum = async (): Promise<unknown> =>
    (await cluster.get<{ data: { checksum: string } }>(sites.childPlace(configMaps, 'web'))).data.checksum;
  const replaced = async (
    before: Readonly<Record<string, string>>,
  ): Promise<Readonly<Record<string, string>>> =>
    eventually(async () => {
      const now = await read();
      expect(now['tls.crt']).not.toBe(before['tls.crt']);
      return now;
    });

  await sites.create('web', {});
  await sites.ready('web');
  const first = await read();
  expect(await handshake(first, first['ca.crt'])).toBeUndefined();
  expect(await handshake(first, first['ca.crt'], 'other.test')).toBe('ERR_TLS_CERT_ALTNAME_INVALID');
  const before = await checksum();

  // What is stored is enough to go on from.
  await settled(cluster, user);
  const requests = await requestsFromNowOn(cluster, user);
  await controller.kill();
  controller = await start();
  await controller.reconciled('web');
  await sites.touch('web');
  await settled(cluster, user);
  expect(writes(await requests()).map(summary)).toEqual([]);

  /** Stores a certificate of its authority of which less than a third is left after some time. */
  const shorten = async (milliseconds: number): Promise<Readonly<Record<string, string>>> => {
    const { 'ca.crt': cert, 'ca.key': key } = await read();
    const now = Date.now();
    const times = { notBefore: now - 60_000, notAfter: now + 30_000 + 1.5 * milliseconds };
    const issuer = { cert: cert!, key: key! };
    const short = await issueCertificate({ ...times, commonName: 'short', names: ['web.test'], issuer });
    const data = Object.entries({ 'tls.crt': short.cert, 'tls.key': short.key });
    const encoded = data.map(([name, text]) => [name, Buffer.from(text).toString('base64')]);
    await cluster.merge(place, { data: Object.fromEntries(encoded) as object });
    return read();
  };
  // No event tells the operator when the time has come.
  const short = await shorten(4_000);
  const renewed = await replaced(short);
  expect(renewed).toMatchObject({ password: first.password, 'ca.crt': first['ca.crt'] });
  expect(await handshake(renewed, first['ca.crt'])).toBeUndefined();
  await eventually(async () => {
    expect(await checksum()).not.toBe(before);
  });

  // While it is down, the time comes, too; and the kill may come at any point of the renewal.
  await controller.kill();
  const overdue = await shorten(0);
  controller = await start();
  await replaced(overdue);
  await controller.kill();
  controller = await start();
  await controller.reconciled('web');
  await settled(cluster, user);
  const settledOn = await read();
  expect(await handshake(settledOn, first['ca.crt'])).toBeUndefined();

  await sites.edit('web', { hosts: ['web.test', 'other.test'] });
  const named = await replaced(settledOn);
  expect(await handshake(named, first['ca.crt'], 'other.test')).toBeUndefined();
  expect(named.password).toBe(first.password);

  await cluster.merge(sites.place('web'), {
    metadata: { annotations: { 'reconstruct.kosmos.io/rotate': '1' } },
  });
  const rotated = await replaced(named);
  expect(await handshake(rotated, first['ca.crt'])).toBe('UNABLE_TO_VERIFY_LEAF_SIGNATURE');
  // A client that has read the new authorities meets a server that has yet to read its new certificate.
  for (const served of [named, rotated]) expect(await handshake(served, rotated['ca.crt'])).toBeUndefined();
  await sites.ready('web');
  await settled(cluster, user);

  const diff = new Reconstruct('diff', cluster.sandbox.adminKubeconfig, ['--config', config]);
  const manifest = {
    apiVersion: kind.type.apiVersion,
    kind: 'Site',
    metadata: { name: 'web', namespace: sites.namespace },
  };
  const of = (hosts: readonly string[]): object => ({ ...manifest, spec: { hosts } });
  expect((await diff.diff([of(['web.test', 'other.test'])])).differs).toBe(false);
  const shown = await diff.diff([of(['third.test'])]);
  expect(shown).toEqual(await diff.diff([of(['third.test'])]));

  await sites.edit('web', { hosts: [] });
  const { message } = await sites.stalled('web', 'InvalidCertificate');
  expect(message).toContain('it has no DNS name');
  expect(await read()).toEqual(rotated);

  const everywhere = [
    ...[shown, controllers.map(({ log, strayOutput }) => [log, strayOutput]), await sites.events('web')],
    ...[await sites.objects(configMaps), await cluster.list(kind.type, sites.namespace)],
  ].map((part) => JSON.stringify(part));
  expect(seen.size).toBeGreaterThan(20);
  for (const key of seen) expect(everywhere.some((part) => part.includes(key))).toBe(false);
});
