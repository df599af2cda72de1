import { generateKeyPair } from 'node:crypto';
import { promisify } from 'node:util';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readdirSync } from 'node:fs';
import { auditPolicy } from './audit.js';
import type { Ports } from './ports.js';
import { ownUsers, tokenFile, type User } from './users.js';
import { sandboxFolder } from './paths.js';

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

/** Files and ports of a sandbox. */
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

const loopback = '127.0.0.1';

/** The URL of etcd's client port. */
export function etcdUrl({ ports }: Layout): string {
  return `http://${loopback}:${ports.etcdClient}`;
}

/** The API server's URL. */
export function apiServerUrl({ ports }: Layout): string {
  return `https://${loopback}:${ports.apiServer}`;
}

/** Returns the arguments for a single member, named by the sandbox's id: so its owner can tell which etcd answers. */
export function etcdArguments(layout: Layout): string[] {
  const [client, peer] = [etcdUrl(layout), `http://${loopback}:${layout.ports.etcdPeer}`];
  return [
    `--name=${layout.id}`,
    `--data-dir=${paths(layout).etcdData}`,
    `--listen-client-urls=${client}`,
    `--advertise-client-urls=${client}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=${layout.id}=${peer}`,
    '--unsafe-no-fsync', // The data need not survive a power cut, only a restart of the API server.
    '--log-level=warn',
  ];
}

export function apiServerArguments(layout: Layout, auditLog: boolean): string[] {
  const files = paths(layout);
  return [
    `--etcd-servers=${etcdUrl(layout)}`,
    `--secure-port=${layout.ports.apiServer}`,
    `--bind-address=${loopback}`,
    `--advertise-address=${loopback}`,
    `--cert-dir=${files.certificates}`,
    `--token-auth-file=${files.tokens}`,
    '--authorization-mode=Node,RBAC',
    `--service-account-issuer=${apiServerUrl(layout)}`,
    `--service-account-signing-key-file=${files.serviceAccountPrivateKey}`,
    `--service-account-key-file=${files.serviceAccountPublicKey}`,
    '--service-cluster-ip-range=10.96.0.0/14',
    '--endpoint-reconciler-type=none',
    '--enable-admission-plugins=OwnerReferencesPermissionEnforcement',
    ...(auditLog ? auditArguments(files.auditPolicy, files.auditLog) : []),
  ];
}

function auditArguments(policy: string, log: string): string[] {
  // The size, in MB, at which the log would be cut: never, so that no entry is lost to a reader.
  return [`--audit-policy-file=${policy}`, `--audit-log-path=${log}`, '--audit-log-maxsize=1000000'];
}

export function controllerManagerArguments(layout: Layout): string[] {
  const files = paths(layout);
  return [
    `--kubeconfig=${files.kubeconfig(ownUsers['kube-controller-manager'])}`,
    `--service-account-private-key-file=${files.serviceAccountPrivateKey}`,
    `--root-ca-file=${files.ca}`,
    '--use-service-account-credentials',
    '--leader-elect=false',
    `--bind-address=${loopback}`,
    `--secure-port=${layout.ports.controllerManager}`,
    '--horizontal-pod-autoscaler-sync-period=1s',
    '--node-monitor-grace-period=24h',
    '--pvclaimbinder-sync-period=1s',
    '--kube-api-qps=500',
    '--kube-api-burst=1000',
  ];
}

export function schedulerArguments(layout: Layout): string[] {
  return [
    `--kubeconfig=${paths(layout).kubeconfig(ownUsers['kube-scheduler'])}`,
    '--leader-elect=false',
    `--bind-address=${loopback}`,
    `--secure-port=${layout.ports.scheduler}`,
  ];
}

/** kwok plays the kubelet of every node, by the stages in sandbox/stages/. */
export function kwokArguments(layout: Layout): string[] {
  const stages = join(sandboxFolder(), 'stages');
  return [
    `--kubeconfig=${paths(layout).kubeconfig(ownUsers.kwok)}`,
    '--manage-all-nodes=true',
    '--node-lease-duration-seconds=40',
    `--server-address=${loopback}:${layout.ports.kwok}`,
    ...readdirSync(stages)
      .filter((file) => file.endsWith('.yaml'))
      .map((file) => `--config=${join(stages, file)}`),
  ];
}
