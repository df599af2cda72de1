import type { AnyObject } from '../../contract/object.js';
import { groupKind } from '../../contract/resource.js';
import type { JobWatcherStatus } from '../../kinds/job-watcher/spec.js';
import type { StreamIngressStatus } from '../../kinds/stream-ingress/spec.js';
import type { Fact } from './document.js';
import { conditionFacts } from './verdict.js';

type Telling = (cr: AnyObject) => (Fact | undefined)[];

/** What the status of kinds without children of their own says beside its conditions, by group and kind. */
const TOLD: ReadonlyMap<string, Telling> = new Map([
  [groupKind({ apiVersion: 'batch.my.github.com/v1', kind: 'JobWatcher' }), ofJobWatcher],
  [
    groupKind({ apiVersion: 'nginx-stream.jeffthecoder.xyz/v1beta1', kind: 'StreamIngress' }),
    ofStreamIngress,
  ],
]);

/** What the status of a custom resource says, beside the verdict. */
export function factsOf(cr: AnyObject): Fact[] {
  const own = TOLD.get(groupKind(cr))?.(cr) ?? [];
  return [...conditionFacts(cr), ...own.filter((fact) => fact !== undefined)];
}

function ofStreamIngress(cr: AnyObject): (Fact | undefined)[] {
  const { target, upstream, addresses = [] } = (cr.status ?? {}) as StreamIngressStatus;
  return [fact('target', target), fact('upstream', upstream), fact('addresses', addresses.join(', '))];
}

function ofJobWatcher(cr: AnyObject): (Fact | undefined)[] {
  const { lastRun, lastFinished, nextDeletion } = (cr.status ?? {}) as JobWatcherStatus;
  const skipped = Object.entries(lastRun?.skipped ?? {}).map(([reason, count]) => `${reason} ${count}`);
  return [
    lastRun &&
      fact(
        'last run',
        `${lastFinished ?? ''}: ${lastRun.deleted} deleted, ${lastRun.failed} failed, of ${lastRun.matched} matched ` +
          `and ${lastRun.finished} finished`,
      ),
    fact('skipped', skipped.join(', ')),
    fact('next deletion', nextDeletion),
  ];
}

function fact(name: string, text: string | undefined): Fact | undefined {
  return text === undefined || text === '' ? undefined : { name, text };
}
