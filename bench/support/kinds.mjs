// The kinds that are measured, and how a controller is told to work on some of them alone.
import { join } from 'node:path';
import { builtInFlags } from '../../lib/kinds/flags.js';
import { appService } from '../../lib/kinds/app-service/kind.js';
import { builtInKinds } from '../../lib/kinds/index.js';
import { jobWatcher } from '../../lib/kinds/job-watcher/kind.js';
import { streamIngress } from '../../lib/kinds/stream-ingress/kind.js';
import { root } from './util.mjs';

export { appService, jobWatcher, streamIngress };

/** Those that the command doesn't know by itself. */
export const furtherKinds = [streamIngress, jobWatcher].filter(
  ({ name }) => !builtInKinds.some((kind) => kind.name === name),
);

/** Arguments of `reconstruct run` for these kinds and no other. */
export function argumentsFor(kinds) {
  const needsConfig = kinds.some((kind) => furtherKinds.includes(kind));
  return [
    ...['--kinds', kinds.map(({ name }) => name).join()],
    ...(needsConfig ? ['--config', join(root, 'bench/support/kinds.config.mjs')] : []),
  ];
}

/** An option with its value, if the command knows it. */
export function flagIfKnown(name, value) {
  return builtInFlags.some((flag) => flag.name === name) ? [name, value] : [];
}
