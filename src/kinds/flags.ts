import type { KindFlag } from '../contract/kind.js';
import { flags as ofJobWatcher } from './job-watcher/settings.js';
import { flags as ofStreamIngress } from './stream-ingress/targets.js';

/**
 * The options of the kinds that come with the project, beside their code: the command line knows them before it loads
 * any kind.
 */
export const flagsByKind: Readonly<Record<string, readonly KindFlag[]>> = {
  StreamIngress: ofStreamIngress,
  JobWatcher: ofJobWatcher,
};

export const builtInFlags: readonly KindFlag[] = Object.values(flagsByKind).flat();
