import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Layout, paths } from './layout.js';
import { sandboxFolder } from './paths.js';
import { ownUsers } from './users.js';

const loopback = '127.0.0.1';

/** The URL of etcd's client port. */
export function etcdUrl({ ports }: Layout): string {
  return `http://${loopback}:${ports.etcdClient}`;
}

/** The API server's URL. */
export function apiServerUrl({ ports }: Layout): string {
  return `https://${loopback}:${ports.apiServer}`;
}

/** One member, by the name of the sandbox's id: so its owner can tell whether it is the one that answers. */
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
