import type { Condition } from '../../contract/conditions.js';
import { describeRef, refOf } from '../../contract/object.js';
import { resourceType } from '../../contract/resource.js';
import { eventually } from '../eventually.js';
import { rolledOut, isReady } from './convergence.js';
import { shortest, trials } from './outcome.js';
import type { Outcome } from './outcome.js';
import { conditionOf } from './stand.js';
import type { LiveResource, Sample, Stand } from './stand.js';
import type { Trial } from './trial.js';

const quotas = resourceType({ apiVersion: 'v1', kind: 'ResourceQuota' });

/** For so long, the status may be behind. */
const TOLD_MILLISECONDS = 10_000;

/** The status says what is so: it speaks of the present spec, by the rules of kstatus, and Ready only of what is ready. */
export async function truth(stand: Stand): Promise<Outcome> {
  let held = 0;
  const undisturbed = await trials(stand, stand.samples, works);
  const heldBack = await trials(stand, stand.samples, async (trial, sample) => {
    if (await holdBackPods(trial, sample)) held++;
  });
  const waiting = stand.samples.filter(({ spec }) => stand.waits(spec)).length;
  const without = held === 0 ? ', none of which makes pods' : '';
  const left = waiting > 0 ? `; ${waiting} of which needn't become ready` : '';
  return {
    tried: `${stand.samples.length} samples, with pods and held back from them${without}${left}`,
    failures: shortest([...undisturbed, ...heldBack]),
  };
}

/** Undisturbed, it isn't stalled, and is ready once its objects are; unless it was said that it waits for somebody. */
async function works(trial: Trial, sample: Sample): Promise<void> {
  await trial.start();
  await trial.create(sample);
  await rolledOut(trial);
  await requireTrue(trial);
  if (trial.stand.waits(sample.spec)) return;
  await eventually(
    async () => {
      const cr = await trial.settled();
      const [ready, stalled] = ['Ready', 'Stalled'].map((type) => conditionOf(cr, type));
      if (stalled?.status === 'True') throw new Error(`Stalled is True (${told(stalled)})`);
      if (ready?.status === 'True' || !(await trial.objects()).every(isReady)) return;
      throw new Error(
        `Ready is ${ready?.status ?? 'absent'} (${told(ready)}), while nothing is done any more and all of its objects are ready`,
      );
    },
    { deadlineMilliseconds: trial.pace.scaled(TOLD_MILLISECONDS), intervalMilliseconds: 200 },
  );
}

function told(condition: Condition | undefined): string {
  return condition === undefined ? '' : `${condition.reason}: ${condition.message}`;
}

/** Returns whether some object wasn't ready for it. */
async function holdBackPods(trial: Trial, sample: Sample): Promise<boolean> {
  const { cluster } = trial.stand;
  const { namespace } = trial;
  trial.steps.push('allow no pods in the namespace, by a ResourceQuota');
  await cluster.create(quotas, {
    ...{ apiVersion: 'v1', kind: 'ResourceQuota' },
    metadata: { name: 'no-pods', namespace },
    spec: { hard: { pods: '0' } },
  });
  await trial.start();
  await trial.create(sample);
  const unready = await requireTrue(trial);
  trial.steps.push('allow pods again');
  await cluster.delete({ type: quotas, namespace, name: 'no-pods' });
  await requireTrue(trial);
  return unready;
}

/** For a moment the status may be behind. @returns whether some object isn't ready */
function requireTrue(trial: Trial): Promise<boolean> {
  return eventually(
    async () => {
      const cr = await trial.settled();
      const lie = lieOf(cr);
      if (lie !== undefined) throw new Error(lie);
      const unready = (await trial.objects()).find((object) => !isReady(object));
      const ready = conditionOf(cr, 'Ready');
      if (unready && ready?.status === 'True')
        throw new Error(`Ready is True (${told(ready)}), while ${describeRef(refOf(unready))} isn't ready`);
      return unready !== undefined;
    },
    { deadlineMilliseconds: trial.pace.scaled(TOLD_MILLISECONDS), intervalMilliseconds: 200 },
  );
}

/** What contradicts itself. */
function lieOf(cr: LiveResource): string | undefined {
  const [ready, reconciling, stalled] = ['Ready', 'Reconciling', 'Stalled'].map((type) =>
    conditionOf(cr, type),
  );
  if (!ready) return 'there is no condition Ready';
  if (ready.observedGeneration !== undefined && ready.observedGeneration !== cr.metadata.generation)
    return `Ready speaks of generation ${ready.observedGeneration}, not of ${cr.metadata.generation ?? 0}`;
  const active = [reconciling, stalled].filter((condition) => condition?.status === 'True');
  if (ready.status === 'True' && active.length > 0) return `Ready and ${active[0]?.type ?? ''} are both True`;
  if (active.length > 1) return 'Reconciling and Stalled are both True';
  return undefined;
}
