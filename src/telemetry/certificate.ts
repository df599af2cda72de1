import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import { messageOf, OperatorError } from '../contract/error.js';
import type { Logger } from './logger.js';

/** Certificate and private key, in PEM. */
export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

/** Certificate of an HTTPS server. */
export interface ServingCertificate {
  readonly current: KeyPair;
  /** Returns the new pair once it was renewed. Called for every connection, and looks at most once a second. */
  renewed(): KeyPair | undefined;
}

/** A folder, as a Secret is mounted, and the names of the two files in it. */
export interface CertificateFiles {
  readonly folder: string;
  readonly cert: string;
  readonly key: string;
}

/**
 * Reads a certificate from files. A renewed one is found when a client connects, so nothing has to be watched; files that
 * can't be used then are logged once, and the previous pair stays.
 * @param flag the option that names the folder, for messages
 * @param now monotonic, milliseconds
 * @throws OperatorError `InvalidInput` where they can't be used at the start
 */
export function certificateIn(
  files: CertificateFiles,
  flag: string,
  log: Logger,
  now: () => number = () => performance.now(),
): ServingCertificate {
  const read = (): KeyPair => {
    // The kubelet renews a mounted Secret by replacing this link; below its target, both files are of one version.
    const data = join(files.folder, '..data');
    const folder = realpathSync(existsSync(data) ? data : files.folder);
    const [cert, key] = [files.cert, files.key].map((name) => readFileSync(join(folder, name), 'utf8'));
    return { cert: cert ?? '', key: key ?? '' };
  };
  const checked = (pair: KeyPair): KeyPair => {
    createSecureContext(pair);
    return pair;
  };
  let current: KeyPair;
  let problem: string | undefined;
  let lookedAt = now();
  try {
    current = checked(read());
  } catch (cause) {
    const names = `${files.cert} and ${files.key}`;
    const message = `${flag} ${files.folder}: ${messageOf(cause)}; put a certificate and its key there, in PEM, as ${names}`;
    throw new OperatorError({ reason: 'InvalidInput', message, cause });
  }
  return {
    get current() {
      return current;
    },
    renewed: () => {
      if (now() - lookedAt < 1_000) return undefined;
      lookedAt = now();
      try {
        const pair = read();
        if (pair.cert === current.cert && pair.key === current.key) return undefined;
        current = checked(pair);
        problem = undefined;
        log.info({ folder: files.folder }, 'serving certificate renewed');
        return current;
      } catch (error) {
        const message = messageOf(error);
        if (message !== problem)
          log.warn(
            { folder: files.folder, error: message },
            'serving certificate unusable, keeping the previous',
          );
        problem = message;
        return undefined;
      }
    },
  };
}

/**
 * Creates a certificate that is signed with its own key, of which nothing leaves the process: for encryption, where clients
 * don't verify the server. It is for `localhost`, as that of controller-runtime.
 * @see https://www.rfc-editor.org/rfc/rfc5280#section-4.1
 */
export function selfSignedCertificate(now: number): ServingCertificate {
  // Node makes keys and no certificates. This one has a fixed form, which takes fewer lines than a library would bring.
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const ecdsaWithSha256 = der(0x30, Buffer.from('06082a8648ce3d040302', 'hex'));
  const commonName = der(0x30, Buffer.from('0603550403', 'hex'), der(0x0c, Buffer.from('localhost')));
  const name = der(0x30, der(0x31, commonName));
  const since = new Date(now - 3_600_000).toISOString().replaceAll(/[-:T]|\.\d+/g, '');
  const names = der(0x30, der(0x82, Buffer.from('localhost')), der(0x87, Buffer.from([127, 0, 0, 1])));
  const alternativeNames = der(0x30, Buffer.from('0603551d11', 'hex'), der(0x04, names));
  const toBeSigned = der(
    0x30,
    der(0xa0, der(0x02, Buffer.from([2]))),
    // Positive, and without a zero at its head.
    der(0x02, Buffer.from([0x40]), randomBytes(15)),
    ecdsaWithSha256,
    name,
    // It ends with the process; the standard has this for "no end".
    der(0x30, der(0x17, Buffer.from(since.slice(2))), der(0x18, Buffer.from('99991231235959Z'))),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, der(0x30, alternativeNames)),
  );
  const signature = der(0x03, Buffer.from([0]), sign('sha256', toBeSigned, privateKey));
  const body = der(0x30, toBeSigned, ecdsaWithSha256, signature).toString('base64');
  const current = {
    cert: `-----BEGIN CERTIFICATE-----\n${body.replaceAll(/.{64}/g, '$&\n')}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
  return { current, renewed: () => undefined };
}

/** Encodes a value by the distinguished encoding rules of ASN.1. */
function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const head =
    length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...head]), content]);
}
