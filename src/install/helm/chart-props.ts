import type { Kind } from '../../contract/kind.js';
import { RUNBOOKS } from '../monitoring/props.js';
import type { InstallProps } from '../props.js';

/** What a chart is made of: what it may install, and the values that it has by default. */
export interface ChartProps extends Omit<InstallProps, 'namespace' | 'managedBy'> {
  /** Those of the kinds that are installed unless the values say otherwise. */
  readonly on: readonly Kind[];
  /** Of the chart and of what it installs. */
  readonly version: string;
  /** The oldest Kubernetes that will do, e.g. `1.34`. */
  readonly oldestKubernetes: string;
}

/** Stands for the namespace of a release. */
export const RELEASE_NAMESPACE = 'zznamespacezz';

/** Stands for whoever manages a release: Helm. */
export const MANAGER = 'zzmanagerzz';

/** Stands for a namespace that is watched. */
export const WATCHED_NAMESPACE = 'zzwatchedzz';

/** Stands for where the pages of alerts are read. */
export const RUNBOOKS_PLACE = 'zzrunbookszz';

/** What stands for values that every installation has, by the expression of it. */
export const COMMON_PLACES: readonly (readonly [string, string])[] = [
  [RELEASE_NAMESPACE, '$.Release.Namespace'],
  [MANAGER, '$.Release.Service'],
  [RUNBOOKS_PLACE, `regexReplaceAll "/+$" ($.Values.monitoring.runbooks | default "${RUNBOOKS}") ""`],
];

/** Stands for the image. */
export const IMAGE = 'zzimagezz';

/** An installation of all kinds, with what stands for values in place of them. */
export function renderProps({ kinds }: ChartProps): InstallProps {
  return { kinds, namespace: RELEASE_NAMESPACE, image: IMAGE, replicas: 1, managedBy: MANAGER };
}
