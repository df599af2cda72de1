import { controllerOf } from '../../contract/object.js';
import type { Finish, Outcome } from './finish.js';
import type { KeptJob } from './keep-job.js';
import { addTo } from './settle.js';
import type { KeepLast } from './spec.js';

interface Member {
  readonly job: KeptJob;
  readonly finish: Finish;
}

/**
 * The newest finished Jobs of each group: of one controller, else of one namespace and value of the label. What is
 * being deleted already is none of them.
 * @param jobs those that the watcher matches
 */
export function newest(keepLast: KeepLast, jobs: Iterable<KeptJob>): ReadonlySet<KeptJob> {
  const groups = new Map<string, Member[]>();
  for (const job of jobs) {
    const { finish } = job;
    if (finish === undefined || finish === 'unclear' || job.metadata.deletionTimestamp !== undefined)
      continue;
    if (!keepLast[finish.outcome]) continue;
    const group = `${finish.outcome} ${groupOf(job, keepLast.groupByLabel)}`;
    addTo(groups, group, { job, finish });
  }
  const kept = new Set<KeptJob>();
  for (const members of groups.values()) {
    const count = keepLast[(members[0] as Member).finish.outcome satisfies Outcome] ?? 0;
    for (const { job } of members.sort(newestFirst).slice(0, count)) kept.add(job);
  }
  return kept;
}

function groupOf({ metadata, ...job }: KeptJob, label: string | undefined): string {
  const controller = controllerOf({ ...job, metadata });
  if (controller) return `owner ${controller.uid}`;
  const value = label === undefined ? undefined : metadata.labels?.[label];
  return `namespace ${metadata.namespace}${value === undefined ? '' : ` ${value}`}`;
}

/** Always the same order, also of those that finished in the same second. */
function newestFirst(a: Member, b: Member): number {
  return b.finish.at - a.finish.at || (a.job.metadata.name < b.job.metadata.name ? -1 : 1);
}
