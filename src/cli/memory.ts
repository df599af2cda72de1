import { PerformanceObserver } from 'node:perf_hooks';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';

/** Twice the semi-space. At half of it, collections take noticeably more processor time; above it, no less. */
const ENOUGH_BYTES = 4 * 2 ** 20;

/**
 * Lets V8's young generation grow to some MiB and no further. By itself it grows to over 100 MiB in a burst of events,
 * and holds on to most of that. What a controller allocates lives for one event or as long as its object does, so it
 * gains nothing from a large one.
 *
 * `--max-semi-space-size`, the flag meant for this, is read only when a process starts, and a command can't choose
 * the flags that it is started with. The growth factor is read whenever the young generation would grow. Whoever
 * sets a size of their own, in NODE_OPTIONS or on Node's command line, keeps it.
 */
export function keepYoungGenerationSmall(): void {
  const chosen = [...process.execArgv, process.env.NODE_OPTIONS ?? ''];
  if (chosen.some((option) => /semi[-_]space/.test(option))) return;
  const collections = new PerformanceObserver(() => {
    if (youngGenerationBytes() < ENOUGH_BYTES) return;
    setFlagsFromString('--semi-space-growth-factor=1');
    collections.disconnect();
  });
  collections.observe({ entryTypes: ['gc'] });
}

function youngGenerationBytes(): number {
  return getHeapSpaceStatistics().find((space) => space.space_name === 'new_space')?.space_size ?? 0;
}
