/** The programs of a control plane, by file name. */
export const programNames = [
  'etcd',
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kubectl',
  'kwok',
] as const;

export type Program = (typeof programNames)[number];
