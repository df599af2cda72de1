import { isDeepStrictEqual } from 'node:util';

import { groupKind } from '../../../src/contract/resource.js';
import type { SweepReader } from '../../../src/contract/sweep.js';
import { JOBS, KEY } from '../../../src/kinds/job-watcher/controller.js';
import { keepJob } from '../../../src/kinds/job-watcher/job.js';
import { jobWatcher } from '../../../src/kinds/job-watcher/kind.js';
import { render } from '../../../src/synth/render.js';
import { OPERATOR_NAMESPACE } from './example-stand.js';
import type { ExampleStand } from './example-stand.js';

/** Longer than any example's `frequency`, by which a status may be held back. */
const HOUR = 3_600_000;

/** The names of JobWatchers whose status would be another in an hour, though nothing happens until then. */
export async function untold(stand: ExampleStand): Promise<string[]> {
  const jobs = (await stand.all(JOBS)).map(keepJob);
  const watchers = await stand.all(jobWatcher.type);
  const reader: Partial<SweepReader> = {
    mappedTo: (type) => (groupKind(type) === groupKind(JOBS) ? jobs : watchers),
    deletions: () => [],
    clockSkewMilliseconds: 0,
  };
  const [controller] = jobWatcher.controllers({ render, operatorNamespace: OPERATOR_NAMESPACE });
  const plan = controller!.reconcile(KEY, reader as SweepReader, new Date(Date.now() + HOUR));
  return plan.status
    .filter(({ target, status }) => {
      const live = watchers.find(({ metadata }) => metadata.uid === target.metadata.uid);
      return !isDeepStrictEqual(status([]), live?.status);
    })
    .map(({ target }) => target.metadata.name);
}
