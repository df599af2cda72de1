import { describe, expect, test } from 'vitest';
import { operatorPolicy } from '../../../src/cli/diff/operator-policy.js';
import { policyParser } from '../../../src/cli/policy-option.js';
import { OperatorError } from '../../../src/contract/error.js';
import { installedOperators } from '../../../src/install/installed.js';
import { installManifests } from '../../../src/install/manifests.js';
import { builtInKinds } from '../../../src/kinds/index.js';
import { MemoryCluster } from '../../install/memory-cluster.js';

const PLACE = 'ConfigMap ops/reconstruct-policy';

/** An operator that `install` has made with this policy. */
function clusterWith(text?: string): MemoryCluster {
  return new MemoryCluster(
    installManifests({
      ...{ namespace: 'ops', image: 'reconstruct:1', kinds: builtInKinds, replicas: 1 },
      ...(text !== undefined && { policy: { text, parsed: {} } }),
    }),
  );
}

async function policyIn(cluster: MemoryCluster, find = cluster.find.bind(cluster)) {
  const said: string[] = [];
  const warn = (line: string) => void said.push(`warning: ${line}`);
  const note = (line: string) => void said.push(line);
  const parse = policyParser({}, builtInKinds);
  const policyOf = operatorPolicy({ cluster: { find }, parse, warn, note });
  const [operator] = await installedOperators(cluster);
  return { said, ask: () => policyOf(operator!) };
}

describe('the policy of an operator', () => {
  test('is what its ConfigMap has, read once, and told', async () => {
    const cluster = clusterWith('appservice: { maxSize: 3 }');
    let reads = 0;
    const { said, ask } = await policyIn(cluster, (type, key) => {
      reads++;
      return cluster.find(type, key);
    });
    expect(await ask()).toEqual({ appservice: { maxSize: 3 } });
    expect(await ask()).toEqual({ appservice: { maxSize: 3 } });
    expect(reads).toBe(1);
    expect(said).toEqual([`Judged by the policy of the operator in ops: ${PLACE}`]);
  });

  test('is an empty one where it was installed without one', async () => {
    const { said, ask } = await policyIn(clusterWith());
    expect(await ask()).toEqual({});
    expect(said).toEqual([]);
  });

  test("is warned of where it can't be read", async () => {
    const forbidden = () =>
      Promise.reject(new OperatorError({ reason: 'Forbidden', message: 'Get ConfigMap: not you' }));
    const { said, ask } = await policyIn(clusterWith('{}'), forbidden);
    expect(await ask()).toBeUndefined();
    expect(said).toEqual([
      "warning: The policy of the operator in ops can't be read (Get ConfigMap: not you): nothing is taken to be " +
        'forbidden; give it with --policy',
    ]);

    const gone = await policyIn(clusterWith('{}'), () => Promise.resolve(undefined));
    expect(await gone.ask()).toBeUndefined();
    expect(gone.said[0]).toContain('there is no policy.yaml in the ConfigMap ops/reconstruct-policy');
  });

  test("ends the diff where it isn't right, since only the operator knows the one before", async () => {
    const { ask } = await policyIn(clusterWith('appservice:\n  maxSise: 3\n'));
    await expect(ask()).rejects.toMatchObject({
      exitCode: 3,
      lines: [
        expect.stringMatching(new RegExp(`^${PLACE}: line 2: .*maxSise`)) as string,
        'The operator in ops goes on by the policy that it had before; mend it, or give that one with --policy',
      ],
    });
  });
});
