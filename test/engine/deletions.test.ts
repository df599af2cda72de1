import { expect, it } from 'vitest';
import { Deletions } from '../../src/engine/deletions.js';
import { CONFIG_MAP, configMap, WIDGET } from './support/builders.js';
import { VirtualClock } from './support/virtual-clock.js';

const HOUR = 3_600_000;

it('keeps what was deleted under one name apart by UID, oldest first, and types apart', () => {
  const clock = new VirtualClock();
  const deletions = new Deletions(clock);
  const start = clock.now();
  deletions.add(configMap('a', '1', { uid: 'first' }));
  clock.jump(HOUR);
  deletions.add(configMap('a', '9', { uid: 'second' }));
  // It is asked for twice, since it is slow to go.
  deletions.add(configMap('a', '10', { uid: 'second' }));
  expect(deletions.of(CONFIG_MAP, 'shop/a')).toEqual([
    { uid: 'first', at: new Date(start) },
    { uid: 'second', at: new Date(start + HOUR) },
  ]);
  expect(deletions.of(WIDGET, 'shop/a')).toEqual([]);
  clock.jump(23 * HOUR);
  expect(deletions.of(CONFIG_MAP, 'shop/a').map(({ uid }) => uid)).toEqual(['second']);
});

it('keeps no more than 10,000, the latest', () => {
  const deletions = new Deletions(new VirtualClock());
  for (let n = 0; n <= 10_000; n++) deletions.add(configMap(`n${n}`, '1'));
  expect(deletions.of(CONFIG_MAP, 'shop/n0')).toEqual([]);
  expect(deletions.of(CONFIG_MAP, 'shop/n1')).toHaveLength(1);
  expect(deletions.of(CONFIG_MAP, 'shop/n10000')).toHaveLength(1);
});
