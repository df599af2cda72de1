const LOOK_MILLISECONDS = 5_000;
/** Of the time between two looks. A settled controller needs a twentieth of this. */
const IDLE_SHARE = 0.02;
/** Less isn't worth a collection. */
const WORTH_COLLECTING_BYTES = 4 * 2 ** 20;

/**
 * Collects once, when the process has become idle, what a start or a burst has left behind: V8 collects when something is
 * allocated, so garbage would stay until there is work again. Does nothing where Node wasn't started with `--expose-gc`,
 * as it is in the image; doesn't keep the process alive.
 */
export function collectWhenIdle(): void {
  const { gc } = globalThis;
  if (!gc) return;
  let cpu = process.cpuUsage();
  let kept = 0;
  setInterval(() => {
    const { user, system } = process.cpuUsage(cpu);
    const isIdle = (user + system) / 1000 < IDLE_SHARE * LOOK_MILLISECONDS;
    if (isIdle && process.memoryUsage().heapUsed - kept > WORTH_COLLECTING_BYTES) {
      gc({ type: 'major', execution: 'sync', flavor: 'last-resort' });
      kept = process.memoryUsage().heapUsed;
    }
    cpu = process.cpuUsage();
  }, LOOK_MILLISECONDS).unref();
}
