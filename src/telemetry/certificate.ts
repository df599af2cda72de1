import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import { messageOf, OperatorError } from '../contract/error.js';
import type { KeyPair } from '../values/x509.js';
import { issueCertificate } from '../values/x509.js';
import type { Logger } from './logger.js';

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
 */
export async function selfSignedCertificate(now: number): Promise<ServingCertificate> {
  const current = await issueCertificate({
    ...{ commonName: 'localhost', names: ['localhost', '127.0.0.1'], notBefore: now - 3_600_000 },
    // It ends with the process; RFC 5280 has this for "no end".
    notAfter: Date.UTC(9999, 11, 31, 23, 59, 59),
  });
  return { current, renewed: () => undefined };
}
