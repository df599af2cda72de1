import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { repoFolder } from '../../sandbox/paths.js';

/** How large the young generation has grown, in MiB, under a load that keeps a part of what it makes. */
function youngGenerationMiB(options: readonly string[], env: NodeJS.ProcessEnv = {}): number {
  const source = `
    import v8 from 'node:v8';
    const { keepYoungGenerationSmall } = await import(${JSON.stringify(join(repoFolder(), 'src/cli/memory.ts'))});
    keepYoungGenerationSmall();
    const kept = [];
    const { setImmediate: turn } = await import('node:timers/promises');
    for (let i = 0; i < 200_000; i++) {
      kept.push(JSON.parse('{"a":{"b":[{"c":"d' + i + '"},{"e":{}},{"f":{}}]}}'));
      if (kept.length > 10_000) kept.splice(0, 2_500);
      if (i % 100 === 0) await turn();
    }
    const { space_size } = v8.getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space');
    console.log(space_size / 2 ** 20);`;
  const { NODE_OPTIONS: _, ...rest } = process.env;
  const args = [...options, '--no-warnings', '--input-type=module', '--eval', source];
  return Number(execFileSync(process.execPath, args, { env: { ...rest, ...env }, encoding: 'utf8' }));
}

test('the young generation stays small', () => {
  expect(youngGenerationMiB([])).toBeLessThanOrEqual(8);
});

test.for<[string, readonly string[], NodeJS.ProcessEnv]>([
  ["Node's command line", ['--max-semi-space-size=8'], {}],
  ['NODE_OPTIONS', [], { NODE_OPTIONS: '--max-semi-space-size=8' }],
])('a size chosen by %s is kept', ([, options, env]) => {
  expect(youngGenerationMiB(options, env)).toBe(16);
});
