// What an author waits for: the sweep of a kind with three children, in a sandbox of its own.
import { sweep } from '../../lib/testing/index.js';
import { sampled } from '../support/three-children.mjs';

/** Five minutes. */
const BAR_SECONDS = 300;

export async function swept(figures) {
  const { kind, samples } = sampled();
  const report = await sweep(kind, samples, {
    seed: 7,
    onResult: ({ check, seconds }) => {
      figures.note('sweep', check, seconds, 's');
    },
  });
  figures.note('sweep', 'all of it', report.seconds, 's', BAR_SECONDS);
  const failed = report.checks.filter(({ held }) => !held).length;
  figures.note('sweep', 'checks that failed', failed, '', 0);
}
