import type { KubernetesObject } from '../../contract/object.js';

/** Who makes a Job again that has vanished. */
export type Tracker = 'Argo CD' | 'Flux' | 'Helm';

const ANNOTATIONS: Readonly<Record<string, Tracker>> = {
  'argocd.argoproj.io/tracking-id': 'Argo CD',
  'argocd.argoproj.io/hook': 'Argo CD',
  'meta.helm.sh/release-name': 'Helm',
  'helm.sh/hook': 'Helm',
};

const LABELS: Readonly<Record<string, Tracker>> = {
  'kustomize.toolkit.fluxcd.io/name': 'Flux',
  'helm.toolkit.fluxcd.io/name': 'Flux',
};

/**
 * Who tracks an object, by the marks that they leave on what they make.
 * @returns undefined where nobody does
 */
export function trackerOf({ metadata }: KubernetesObject): Tracker | undefined {
  return found(ANNOTATIONS, metadata.annotations ?? {}) ?? found(LABELS, metadata.labels ?? {});
}

function found(
  marks: Readonly<Record<string, Tracker>>,
  on: Readonly<Record<string, string>>,
): Tracker | undefined {
  const mark = Object.keys(marks).find((key) => Object.hasOwn(on, key));
  return mark === undefined ? undefined : marks[mark];
}
