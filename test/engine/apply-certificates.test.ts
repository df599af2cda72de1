import { createPrivateKey, X509Certificate } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import { GeneratedSecrets } from '../../src/author/generated.js';
import type { Change } from '../../src/contract/change.js';
import type { AnyObject } from '../../src/contract/object.js';
import { secretType } from '../../src/values/generated.js';
import { issueCertificate } from '../../src/values/x509.js';
import { OWNER } from './support/apply-setup.js';
import { widget, WIDGET } from './support/builders.js';
import { FakeApiServer } from './support/fake-api-server.js';
import { GeneratedProcess } from './support/generated-process.js';
import { VirtualClock } from './support/virtual-clock.js';

const DAY = 86_400_000;
const SECRET = 'shop/web-widget-generated';
const generated = new GeneratedSecrets(WIDGET, {
  password: {},
  tls: { dnsNames: ({ spec }: { spec: { names: string[] } }) => spec.names, days: 30 },
});
let server: FakeApiServer;
let clock: VirtualClock;

function newProcess() {
  const process = new GeneratedProcess(server, generated, { clock });
  const known = (): AnyObject | undefined => process.reader.get(secretType, SECRET);
  /** Carries out what the next plan asks for; undefined where it asks for nothing. */
  const reconcile = async (
    token = '',
    names: readonly string[] = ['web.shop.svc'],
  ): Promise<Change | undefined> => {
    const cr = {
      ...widget('web', token ? { annotations: { 'reconstruct.kosmos.io/rotate': token } } : {}),
      spec: { size: 1, names },
    };
    const missing = generated.missing(cr, known(), { now: new Date(clock.now()) });
    return missing && (await process.generate(cr, missing));
  };
  return { process, known, reconcile };
}

/** The Secret as users read it. */
function live() {
  const { data = {} } = (server.get(secretType, SECRET) ?? {}) as {
    readonly data?: Readonly<Record<string, string>>;
  };
  const text = (key: string): string => Buffer.from(data[key] ?? '', 'base64').toString();
  const authorities = text('ca.crt')
    .split(/(?<=-----END CERTIFICATE-----\n)/)
    .map((pem) => new X509Certificate(pem));
  return {
    data,
    authorities,
    leaf: new X509Certificate(text('tls.crt')),
    key: text('tls.key'),
    caKey: text('ca.key'),
  };
}

/** Reports whether a client that knows these authorities takes a server with this certificate for the right one, now. */
function isTrusted(
  leaf: X509Certificate,
  authorities: readonly X509Certificate[],
  host = 'web.shop.svc',
): boolean {
  const isValid = ({ validFromDate, validToDate }: X509Certificate): boolean =>
    validFromDate.getTime() <= clock.now() && clock.now() < validToDate.getTime();
  const issuer = authorities.find((ca) => ca.ca && leaf.checkIssued(ca) && leaf.verify(ca.publicKey));
  return issuer !== undefined && isValid(issuer) && isValid(leaf) && leaf.checkHost(host) !== undefined;
}

/** Another writer changes the data. */
function edit(change: Readonly<Record<string, string | undefined>>): void {
  const secret = server.get(secretType, SECRET) as AnyObject & { readonly data: object };
  const data = Object.entries({ ...secret.data, ...change }).filter(([, value]) => value !== undefined);
  server.put(secretType, { ...secret, data: Object.fromEntries(data) });
}

beforeEach(() => {
  server = new FakeApiServer();
  clock = new VirtualClock();
});

describe('generated certificates', () => {
  it('are issued with their key for the days and names, by an authority of ten years, and stay until a third is left', async () => {
    const { reconcile, known } = newProcess();
    expect(await reconcile('', ['web.shop.svc', 'web'])).toMatchObject({ action: 'created' });
    const { leaf, authorities, key, caKey, data } = live();
    expect(isTrusted(leaf, authorities)).toBe(true);
    expect(isTrusted(leaf, authorities, 'web')).toBe(true);
    expect(isTrusted(leaf, authorities, 'other')).toBe(false);
    expect(leaf.ca).toBe(false);
    expect(leaf.checkPrivateKey(createPrivateKey(key))).toBe(true);
    expect(authorities.map((ca) => ca.checkPrivateKey(createPrivateKey(caKey)))).toEqual([true]);
    expect(leaf.validToDate.getTime()).toBe(clock.now() + 30 * DAY);
    expect(authorities[0]?.validToDate.getTime()).toBe(clock.now() + 3_650 * DAY);
    expect(server.get(secretType, SECRET)).toMatchObject({ type: 'kubernetes.io/tls' });
    for (const secret of [data['tls.key']!, key.slice(40, 80), data['ca.key']!])
      expect(JSON.stringify(known())).not.toContain(secret);

    const renewal = generated.renewalOf(known())!.getTime();
    expect(Math.round((renewal - clock.now()) / DAY)).toBe(20);
    clock.jump(renewal - clock.now() - 1);
    expect(await reconcile('', ['web.shop.svc', 'web'])).toBeUndefined();
  });

  it('are renewed by the same authority, with another key, and no value beside them is replaced', async () => {
    const { reconcile } = newProcess();
    await reconcile();
    const before = live();
    clock.jump(21 * DAY);
    expect(await reconcile()).toMatchObject({ action: 'configured', made: ['tls.crt', 'tls.key'] });
    const after = live();
    expect(after.data).toMatchObject({ password: before.data.password, 'ca.crt': before.data['ca.crt'] });
    expect(after.key).not.toBe(before.key);
    expect(isTrusted(after.leaf, before.authorities)).toBe(true);
    expect(after.leaf.validToDate.getTime()).toBe(clock.now() + 30 * DAY);
    expect(await reconcile()).toBeUndefined();
  });

  it('are renewed by one process only, and are those of a try whose answer was lost', async () => {
    const [one, two] = [newProcess(), newProcess()];
    await one.reconcile();
    expect(await two.reconcile()).toMatchObject({ action: 'unchanged' });
    clock.jump(21 * DAY);
    server.intercept = (request) => {
      if (request.method !== 'PATCH') return undefined;
      server.intercept = () => undefined;
      void server.request(request);
      throw new Error('socket hang up');
    };
    expect(await one.reconcile()).toMatchObject({ action: 'failed', error: { reason: 'Unreachable' } });
    const renewed = live().data;
    expect(await two.reconcile()).toMatchObject({ action: 'unchanged' });
    expect(await one.reconcile()).toMatchObject({ action: 'unchanged' });
    expect(live().data).toEqual(renewed);
  });

  it('have other names by the same authority, and none for another order', async () => {
    const { reconcile } = newProcess();
    await reconcile('', ['b.shop.svc', 'a.shop.svc']);
    const before = live();
    expect(await reconcile('', ['a.shop.svc', 'B.shop.svc', 'b.shop.svc'])).toBeUndefined();
    expect(await reconcile('', ['a.shop.svc', '*.c.shop.svc'])).toMatchObject({ action: 'configured' });
    const after = live();
    expect(isTrusted(after.leaf, before.authorities, 'x.c.shop.svc')).toBe(true);
    expect(isTrusted(after.leaf, before.authorities, 'b.shop.svc')).toBe(false);
    expect(after.data.password).toBe(before.data.password);
  });

  it('are replaced for a rotation with their authority, which stays known until the next renewal', async () => {
    const { reconcile } = newProcess();
    await reconcile();
    const before = live();
    await reconcile('1');
    const after = live();
    expect(after.caKey).not.toBe(before.caKey);
    expect(isTrusted(after.leaf, before.authorities)).toBe(false);
    expect(isTrusted(after.leaf, after.authorities)).toBe(true);
    expect(isTrusted(before.leaf, after.authorities)).toBe(true);
    expect(await reconcile('1')).toBeUndefined();
    clock.jump(21 * DAY);
    await reconcile('1');
    expect(live().authorities.map(String)).toEqual([String(after.authorities[0])]);
  });

  it('are trusted over twelve years by clients that have read neither the last certificate nor the last authorities', async () => {
    const { reconcile, known } = newProcess();
    await reconcile();
    const keys = new Set([live().caKey]);
    for (const end = clock.now() + 12 * 365 * DAY; clock.now() < end;) {
      const before = live();
      clock.jump(generated.renewalOf(known())!.getTime() - clock.now() + DAY);
      expect(await reconcile()).toMatchObject({ action: 'configured' });
      const after = live();
      for (const { leaf } of [before, after])
        for (const { authorities } of [before, after]) expect(isTrusted(leaf, authorities)).toBe(true);
      expect(after.authorities.length).toBeLessThanOrEqual(2);
      keys.add(after.caKey);
    }
    expect(keys.size).toBe(2);
  });

  it.each([
    ['the certificate', { 'tls.crt': undefined }, true],
    ['its key', { 'tls.key': '' }, true],
    ['its key, for one of others,', { 'tls.key': Buffer.from('no key').toString('base64') }, true],
    ['the authority', { 'ca.crt': undefined }, false],
  ])('are issued again where %s is lost, and contested where that goes on', async (_, loss, isSame) => {
    const { reconcile, process } = newProcess();
    await reconcile();
    const { authorities } = live();
    for (let times = 0; times < 6; times++) {
      edit(loss);
      process.reader.store(secretType).observed(server.get(secretType, SECRET)!);
      expect(await reconcile()).toMatchObject(
        times < 4 ? { action: 'configured' } : { action: 'failed', error: { reason: 'FieldContested' } },
      );
      if (times === 0) expect(isTrusted(live().leaf, authorities)).toBe(isSame);
    }
  });

  it('are issued by another authority, beside the former, where the key of that is lost', async () => {
    const { reconcile } = newProcess();
    await reconcile();
    const before = live();
    edit({ 'ca.key': undefined });
    clock.jump(21 * DAY);
    // Of the version that was edited, a plan has to know.
    expect(await reconcile()).toMatchObject({ action: 'failed', error: { reason: 'Conflict' } });
    expect(await reconcile()).toMatchObject({ action: 'configured' });
    const after = live();
    expect(isTrusted(after.leaf, after.authorities)).toBe(true);
    expect(isTrusted(before.leaf, after.authorities)).toBe(true);
    expect(isTrusted(after.leaf, before.authorities)).toBe(false);
  });

  it('are those that a Secret without our record has, of an authority without a key, until they are renewed', async () => {
    const { reconcile } = newProcess();
    const times = { notBefore: clock.now(), notAfter: clock.now() + 60 * DAY };
    const ca = await issueCertificate({ commonName: 'theirs', ...times });
    const { cert, key } = await issueCertificate({
      ...times,
      commonName: 'web',
      names: ['web.shop.svc'],
      issuer: ca,
    });
    const theirs = { 'ca.crt': ca.cert, 'tls.crt': cert, 'tls.key': key };
    const data = Object.entries(theirs).map(([name, text]) => [name, Buffer.from(text).toString('base64')]);
    const metadata = { namespace: 'shop', name: 'web-widget-generated', ownerReferences: [OWNER] };
    server.put(secretType, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata,
      data: Object.fromEntries(data) as object,
    });
    expect(await reconcile()).toMatchObject({ action: 'configured', made: ['password'] });
    expect(live().leaf.toString()).toBe(cert);
    clock.jump(41 * DAY);
    expect(await reconcile()).toMatchObject({ action: 'configured' });
    expect(live().authorities.map(({ subject }) => subject)).toEqual([
      expect.stringContaining('reconstruct'),
      'CN=theirs',
    ]);
  });
});
