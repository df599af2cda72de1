import { createServer } from 'node:net';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../..', import.meta.url));

/** Asks until the answer is yes. */
export async function until(what, ask, { milliseconds = 60_000, every = 50 } = {}) {
  const deadline = performance.now() + milliseconds;
  for (;;) {
    const answer = await ask();
    if (answer) return answer;
    if (performance.now() > deadline) throw new Error(`Waited ${milliseconds / 1000} s in vain for ${what}`);
    await delay(every);
  }
}

/** Runs an asynchronous function on all items, so many at once. */
export async function each(items, concurrency, work) {
  let next = 0;
  const worker = async () => {
    while (next < items.length) {
      const index = next++;
      await work(items[index], index);
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, items.length) }, worker));
}

export async function seconds(work) {
  const start = performance.now();
  await work();
  return (performance.now() - start) / 1000;
}

export function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}

export function median(values) {
  return quantile(values, 0.5);
}

export function quantile(values, q) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))];
}

export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}
