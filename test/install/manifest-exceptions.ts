/** A finding of kube-score that is meant to be. */
export interface ManifestException {
  /** The name of the check. */
  readonly check: string;
  readonly kind: string;
  /** Why it is right as it is. */
  readonly reason: string;
  /** Of how many replicas. @default - any number */
  readonly replicas?: 'one' | 'several';
}

export const manifestExceptions: readonly ManifestException[] = [
  {
    ...{ check: 'container-image-pull-policy', kind: 'Deployment' },
    reason:
      'the image always has a tag or a digest, which names one image; a Pod that has to move starts too while the ' +
      'registry is down',
  },
  {
    ...{ check: 'deployment-has-host-podantiaffinity', kind: 'Deployment', replicas: 'several' },
    reason: 'topology spread constraints keep the Pods apart, by node and by zone',
  },
  {
    ...{ check: 'deployment-replicas', kind: 'Deployment', replicas: 'one' },
    reason: 'one replica was asked for',
  },
];
