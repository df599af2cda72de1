import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { auditPolicy } from './audit.js';
import { makeServiceAccountKeys } from './keys.js';
import type { Ports } from './ports.js';
import { tokenFile, type User } from './users.js';

/** Where the files of one sandbox lie and which ports it uses. */
export interface Layout {
  /** Unlike any other sandbox's. */
  readonly id: string;
  readonly dir: string;
  readonly ports: Ports;
}

/** Paths of the files, below the sandbox's folder. */
export function paths({ dir }: Pick<Layout, 'dir'>) {
  const certificates = join(dir, 'certificates');
  return {
    etcdData: join(dir, 'etcd'),
    certificates,
    /** Made by the API server when it first starts; it signs itself, so it is the CA too. */
    ca: join(certificates, 'apiserver.crt'),
    tokens: join(dir, 'tokens.csv'),
    serviceAccountPrivateKey: join(dir, 'service-account.key'),
    serviceAccountPublicKey: join(dir, 'service-account.pub'),
    auditPolicy: join(dir, 'audit-policy.yaml'),
    auditLog: join(dir, 'audit.log'),
    kubectlCache: join(dir, 'kubectl-cache'),
    log: (program: string) => join(dir, 'logs', `${program}.log`),
    kubeconfig: (user: string) => join(dir, 'kubeconfigs', user.replace(':', '-')),
  };
}

/** Makes the folder and the files the API server reads when it starts. */
export async function writeLayout(layout: Layout, users: Iterable<User>): Promise<void> {
  const files = paths(layout);
  await mkdir(layout.dir, { recursive: true, mode: 0o700 });
  await Promise.all(['logs', 'kubeconfigs', 'certificates'].map((name) => mkdir(join(layout.dir, name))));
  const keys = await makeServiceAccountKeys();
  await Promise.all([
    writeFile(files.tokens, tokenFile(users), { mode: 0o600 }),
    writeFile(files.serviceAccountPrivateKey, keys.privateKey, { mode: 0o600 }),
    writeFile(files.serviceAccountPublicKey, keys.publicKey),
    writeFile(files.auditPolicy, auditPolicy()),
  ]);
}
