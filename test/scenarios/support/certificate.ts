import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';

/** A server's certificate that is its own authority, and the key to it; both PEM. */
export interface ServingCertificate {
  readonly certificate: string;
  readonly key: string;
}

/** A certificate for 127.0.0.1, made anew by each call, so that no key lies in the repository. */
export function loopbackCertificate(): ServingCertificate {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const name = sequence(tagged(0x31, sequence(objectId('550403'), tagged(0x0c, Buffer.from('loopback')))));
  const signed = sequence(
    tagged(0xa0, tagged(0x02, Buffer.from([2]))),
    tagged(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    ECDSA_WITH_SHA256,
    name,
    sequence(utcTime(-1), utcTime(1)),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    tagged(0xa3, sequence(authority(), alternativeName())),
  );
  const signature = Buffer.concat([Buffer.from([0]), sign('sha256', signed, privateKey)]);
  const certificate = sequence(signed, ECDSA_WITH_SHA256, tagged(0x03, signature));
  const lines = certificate.toString('base64').replaceAll(/.{64}/g, '$&\n');
  return {
    certificate: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
  };
}

// What follows is as much of DER as a certificate takes. https://www.rfc-editor.org/rfc/rfc5280

const ECDSA_WITH_SHA256 = sequence(objectId('2a8648ce3d040302'));

function authority(): Buffer {
  return sequence(
    objectId('551d13'),
    tagged(0x01, Buffer.from([0xff])),
    tagged(0x04, sequence(tagged(0x01, Buffer.from([0xff])))),
  );
}

function alternativeName(): Buffer {
  return sequence(objectId('551d11'), tagged(0x04, sequence(tagged(0x87, Buffer.from([127, 0, 0, 1])))));
}

function utcTime(days: number): Buffer {
  const date = new Date(Date.now() + days * 86_400_000).toISOString();
  return tagged(0x17, Buffer.from(`${date.slice(2, 19).replaceAll(/[-:T]/g, '')}Z`));
}

function objectId(hex: string): Buffer {
  return tagged(0x06, Buffer.from(hex, 'hex'));
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return tagged(0x30, Buffer.concat(parts));
}

function tagged(tag: number, content: Buffer): Buffer {
  const { length } = content;
  if (length < 0x80) return Buffer.concat([Buffer.from([tag, length]), content]);
  const size = Buffer.from([length >> 8, length & 0xff]);
  return Buffer.concat([Buffer.from([tag, 0x82]), size, content]);
}
