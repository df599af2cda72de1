import { generateKeyPairSync, sign } from 'node:crypto';

/** A certificate for `localhost` and its key, as PEM, made on the spot. @see https://www.rfc-editor.org/rfc/rfc5280 */
export function selfSigned(): { readonly key: string; readonly cert: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  // ecdsa-with-SHA256
  const algorithm = sequence(Buffer.from('06082a8648ce3d040302', 'hex'));
  // commonName
  const name = sequence(tlv(0x31, sequence(Buffer.from('0603550403', 'hex'), tlv(0x0c, 'localhost'))));
  const body = sequence(
    tlv(0x02, Buffer.from([1])),
    algorithm,
    name,
    sequence(tlv(0x17, '200101000000Z'), tlv(0x17, '491231235959Z')),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
  );
  const signature = sign('sha256', body, privateKey);
  const cert = sequence(body, algorithm, tlv(0x03, Buffer.concat([Buffer.from([0]), signature])));
  const base64 = cert.toString('base64').replace(/.{64}/g, '$&\n');
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${base64}\n-----END CERTIFICATE-----\n`,
  };
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return tlv(0x30, Buffer.concat(parts));
}

/** Tag, length, value. */
function tlv(tag: number, value: Buffer | string): Buffer {
  const bytes = Buffer.from(value as string);
  const { length } = bytes;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255];
  return Buffer.concat([Buffer.from([tag, ...size]), bytes]);
}
