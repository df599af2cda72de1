import { generateKeyPair } from 'node:crypto';
import { promisify } from 'node:util';

/** The key pair that signs and checks service account tokens, in PEM. */
export interface ServiceAccountKeys {
  readonly privateKey: string;
  readonly publicKey: string;
}

export async function makeServiceAccountKeys(): Promise<ServiceAccountKeys> {
  return promisify(generateKeyPair)('rsa', {
    modulusLength: 2048,
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  });
}
