import { describe, expect, it } from 'vitest';
import type { Scope } from '../../src/engine/api.js';
import type { Reflector } from '../../src/engine/reflector.js';
import { watchLabel, WatchMetrics, watchName } from '../../src/engine/reflector.js';
import { Metrics } from '../../src/telemetry/metrics.js';
import { CONFIG_MAP, DEPLOYMENT } from './support/builders.js';
import { VirtualClock } from './support/virtual-clock.js';

const NAMESPACES = Array.from({ length: 40 }, (_, index) => `ns-${String(index)}`);

describe('The name of a watch', () => {
  it.each([
    ['deployments.apps in shop', { type: DEPLOYMENT, namespace: 'shop' }],
    ['deployments.apps', { type: DEPLOYMENT }],
    ['configmaps in shop', { type: CONFIG_MAP, namespace: 'shop' }],
  ] as [string, Scope][])('is %s', (name, scope) => {
    expect(watchName(scope)).toBe(name);
  });

  it('is shared as a label by all namespaces after the twenty-fifth', () => {
    const labels = NAMESPACES.map((namespace) => watchLabel({ type: CONFIG_MAP, namespace }, NAMESPACES));
    expect(new Set(labels).size).toBe(26);
    expect(labels.slice(24, 27)).toEqual([
      'configmaps in ns-24',
      'configmaps in other namespaces',
      'configmaps in other namespaces',
    ]);
  });
});

describe('WatchMetrics', () => {
  const at = (silence: number, lastResourceVersion: string | undefined, watches = true): Reflector =>
    ({ watches, lastResourceVersion, silentForMilliseconds: () => silence }) as unknown as Reflector;

  async function scrape(...reflectors: Reflector[]): Promise<string> {
    const metrics = new Metrics();
    const named = new WatchMetrics(metrics, new VirtualClock()).named('x');
    for (const reflector of reflectors) named.follow(reflector);
    return metrics.scrape();
  }

  it('shows of those that share a name the one that is worst off', async () => {
    const text = await scrape(at(2_000, '90'), at(5_000, '70'), at(1_000, '80'));
    expect(text).toContain('reconstruct_watch_silence_seconds{name="x"} 5\n');
    expect(text).toContain('reflector_last_resource_version{name="x"} 70\n');
  });

  it('shows one that has no watch, and one that has no list', async () => {
    const text = await scrape(at(2_000, '90'), at(5_000, undefined, false));
    expect(text).toContain('reconstruct_watch_silence_seconds{name="x"} -1\n');
    expect(text).toContain('reflector_last_resource_version{name="x"} 0\n');
  });
});
