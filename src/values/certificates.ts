import { createPrivateKey, X509Certificate } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import type { CertificateRequest } from '../contract/plan.js';
import type { SecretData } from './generated.js';
import { issueCertificate } from './x509.js';
import type { KeyPair } from './x509.js';

/** Key of the certificate authorities in a Secret: the one that signs next, and before it those whose certificates may be in use. */
export const CA_CERT = 'ca.crt';

/** Key of the private key of the first of them. */
export const CA_KEY = 'ca.key';

export const DAY_MILLISECONDS = 86_400_000;

const CA_DAYS = 3_650;

/** Maximum number of days that a certificate is valid: its authority is replaced while another one still fits. */
export const MAX_DAYS = CA_DAYS / 2;

/** Age of a new certificate, for clients whose clock is late. */
const BACKDATED_MILLISECONDS = 3_600_000;

/** Certificate in a Secret that can be used: its key is there, and one of the authorities has signed it. */
export interface HeldCertificate {
  /** Names as Node shows them. */
  readonly altNames: string | undefined;
  /** Time at which a third of its life is left, in milliseconds since 1970. */
  readonly renewAt: number;
}

export type HeldCertificates = Readonly<Record<string, HeldCertificate & { readonly issuer: string }>>;

/** Returns which of some certificates a Secret holds. */
export function heldCertificates(data: SecretData, names: readonly string[]): HeldCertificates {
  const authorities = authoritiesOf(data);
  const held = names.flatMap((name) => {
    const [leaf] = certificatesOf(data[`${name}.crt`]);
    const key = keyOf(data[`${name}.key`]);
    if (!leaf || !key || !leaf.checkPrivateKey(key)) return [];
    const issuer = authorities.find((ca) => leaf.checkIssued(ca) && leaf.verify(ca.publicKey));
    if (!issuer) return [];
    const [from, to] = [leaf.validFromDate.getTime(), leaf.validToDate.getTime()];
    const renewAt = to - (to - from) / 3;
    return [[name, { altNames: leaf.subjectAltName, renewAt, issuer: issuer.fingerprint256 }] as const];
  });
  return Object.fromEntries(held);
}

/** Reports whether a certificate has the names that are asked for, and isn't to be renewed yet. */
export function isCurrent(
  held: HeldCertificate | undefined,
  { dnsNames }: CertificateRequest,
  now: number,
): boolean {
  return (
    held !== undefined &&
    now < held.renewAt &&
    held.altNames === dnsNames.map((name) => `DNS:${name}`).join(', ')
  );
}

/**
 * Issues certificates, and returns what is to be written into their Secret, in base64. An authority that is near its end signs a last time,
 * and the next one is published beside it: no client meets a certificate of an authority that it can't know yet.
 * @param before those that the Secret holds: their authorities stay among those of `ca.crt`
 * @param isRotation whether another authority signs
 */
export async function issueCertificates(
  data: SecretData,
  {
    due,
    before,
    now,
    isRotation,
  }: {
    readonly due: readonly (readonly [name: string, request: CertificateRequest])[];
    readonly before: HeldCertificates;
    readonly now: number;
    readonly isRotation: boolean;
  },
): Promise<Readonly<Record<string, string>>> {
  if (due.length === 0) return {};
  const longest = Math.max(...due.map(([, { days }]) => days)) * DAY_MILLISECONDS;
  const authorities = authoritiesOf(data).filter((ca) => ca.validToDate.getTime() > now);
  const [first] = authorities;
  const key = keyOf(data[CA_KEY]);
  const isLasting = first && first.validToDate.getTime() >= now + longest;
  const isFit = isLasting && !isRotation && key?.asymmetricKeyType === 'ec' && first.checkPrivateKey(key);
  const ca = isFit ? { cert: first.toString(), key: textOf(data[CA_KEY]) } : await newAuthority(now);
  const isEnding = new X509Certificate(ca.cert).validToDate.getTime() < now + 2 * longest;
  const next = isEnding ? await newAuthority(now) : undefined;
  const issuers = Object.values(before).map(({ issuer }) => issuer);
  const former = authorities.filter((one) => issuers.includes(one.fingerprint256)).map(String);
  const written: Record<string, string> = {
    [CA_CERT]: [...new Set([...(next ? [next.cert] : []), ca.cert, ...former])].join(''),
    [CA_KEY]: (next ?? ca).key,
  };
  for (const [name, { dnsNames, days }] of due) {
    const notAfter = now + days * DAY_MILLISECONDS;
    const times = { notBefore: now - BACKDATED_MILLISECONDS, notAfter };
    const pair = await issueCertificate({
      commonName: dnsNames[0] ?? '',
      names: dnsNames,
      ...times,
      issuer: ca,
    });
    Object.assign(written, { [`${name}.crt`]: pair.cert, [`${name}.key`]: pair.key });
  }
  const encoded = Object.entries(written).map(([name, text]) => [name, Buffer.from(text).toString('base64')]);
  return Object.fromEntries(encoded.filter(([name = '', text]) => data[name] !== text)) as Readonly<
    Record<string, string>
  >;
}

/** Names of authorities differ, since clients look them up by these. */
async function newAuthority(now: number): Promise<KeyPair> {
  const commonName = `reconstruct-ca-${new Date(now).toISOString()}`;
  const notAfter = now + CA_DAYS * DAY_MILLISECONDS;
  return issueCertificate({ commonName, notBefore: now - BACKDATED_MILLISECONDS, notAfter });
}

function authoritiesOf(data: SecretData): readonly X509Certificate[] {
  return certificatesOf(data[CA_CERT]).filter(({ ca }) => ca);
}

/** Returns the certificates of a text in PEM; none where one of them can't be read. */
function certificatesOf(encoded: unknown): readonly X509Certificate[] {
  const texts = textOf(encoded).match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  try {
    return texts.map((text) => new X509Certificate(text));
  } catch {
    return [];
  }
}

function keyOf(encoded: unknown): KeyObject | undefined {
  try {
    return createPrivateKey(textOf(encoded));
  } catch {
    return undefined;
  }
}

function textOf(encoded: unknown): string {
  return typeof encoded === 'string' ? Buffer.from(encoded, 'base64').toString() : '';
}
