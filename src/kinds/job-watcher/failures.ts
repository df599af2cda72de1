import type { OperatorError } from '../../contract/error.js';
import type { KeptJob } from './keep-job.js';
import type { DueJob } from './pass.js';
import type { RunOutcome } from './run.js';

/**
 * Jobs whose deletion has failed, each as long as it stays as it is: others come before them, so that no number of them
 * keeps the others from being deleted.
 */
export class Failures {
  private readonly errors = new WeakMap<KeptJob, OperatorError>();

  has(job: KeptJob): boolean {
    return this.errors.has(job);
  }

  /** What an outcome has of news: a failure that is the last one itself was remembered by the engine, and not tried. */
  tried({ deleted, failed }: RunOutcome): RunOutcome {
    const news = failed.filter(({ due, error }) => this.errors.get(due.job) !== error);
    for (const { due, error } of news) if (speaksOfTheJob(error)) this.errors.set(due.job, error);
    return { deleted, failed: news };
  }

  /** Which of them still stand, whether or not it was their turn. */
  standing(due: Iterable<DueJob>, deleted: readonly DueJob[]): RunOutcome['failed'] {
    const gone = new Set(deleted.map(({ job }) => job));
    return [...due].flatMap((one) => {
      const error = gone.has(one.job) ? undefined : this.errors.get(one.job);
      return error ? [{ due: one, error }] : [];
    });
  }
}

/** Where nobody has answered, nothing was said of the Job. */
function speaksOfTheJob({ reason }: OperatorError): boolean {
  return reason !== 'Unreachable' && reason !== 'NotLeading';
}
