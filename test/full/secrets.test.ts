import { beforeAll, expect, test } from 'vitest';
import { loadKind } from '../support/bundle.js';
import { eventually, secrets } from '../support/cluster.js';
import { command, Reconstruct } from '../support/commands.js';
import { startController } from '../support/operator.js';
import type { RunningController } from '../support/operator.js';
import { Subject } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';

const user = 'operator-58';
const { kind, config } = await loadKind('test/support/kinds/leaky.config.mjs');
const cluster = openCluster();
let leakies: Subject;
let operator: RunningController;

beforeAll(async () => {
  leakies = await Subject.make(cluster, kind, 'leaky');
  operator = await startController({ cluster, user, kinds: [kind], config, namespaces: [leakies.namespace] });
});

/** Everything that is said of a custom resource, to whoever can't read Secrets. */
async function saidOf(name: string): Promise<string> {
  const { status } = await leakies.get(name);
  const events = await eventually(async () => {
    const sent = await leakies.events(name);
    expect(sent).not.toEqual([]);
    return sent;
  });
  const flags = ['--kubeconfig', cluster.sandbox.adminKubeconfig, '--config', config];
  const shown = await command('status', kind.name, name, '-n', leakies.namespace, ...flags);
  return JSON.stringify([status, events, operator.log, operator.strayOutput, shown]);
}

const ENCODED = Buffer.from('hunter2 of prod').toString('base64');

test('what a construct throws over a Secret is said by type and place', async () => {
  const metadata = { name: 'no-json', namespace: leakies.namespace };
  await cluster.create(secrets, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata,
    data: { json: ENCODED },
  });
  await leakies.create('parses', { parses: 'no-json' });
  const { message } = await leakies.stalled('parses', 'RenderFailed');
  expect(message).toMatch(
    /^Leaky leaky-\w+\/parses can't be rendered: SyntaxError, whose text is not shown, since Secrets were read \(at test\/support\/kinds\/leaky\.config\.mjs:\d+:\d+\)$/,
  );
  expect(await saidOf('parses')).not.toContain('hunter2');
});

const differ = new Reconstruct('diff', cluster.sandbox.adminKubeconfig, ['--config', config]);
test.each([
  ['a number', { stringData: { password: 90210777 } }, '.data.password: expected string', '90210777'],
  ['a map', { stringData: { password: { a: 'hunter2' } } }, '.data.password: expected string', 'hunter2'],
  ['text for data', { data: 'hunter2' }, '.data: expected map', 'hunter2'],
  [
    'a pull secret',
    { type: 'kubernetes.io/dockerconfigjson', data: { '.dockerconfigjson': ENCODED } },
    'is invalid: data[.dockerconfigjson]: Invalid value',
    "'h'",
  ],
])('a Secret with %s is refused by path and type, without a value', async (what, secret, said, value) => {
  const name = what.replaceAll(' ', '-');
  await leakies.create(name, { secret });
  const { message } = await leakies.stalled(name, 'Invalid');
  expect(message).toContain(said);
  expect(await saidOf(name)).not.toContain(value);
  const cr = {
    apiVersion: kind.type.apiVersion,
    kind: 'Leaky',
    metadata: { name, namespace: leakies.namespace },
  };
  const { stdout, stderr } = await differ.of([{ ...cr, spec: { secret } }]);
  expect(stdout + stderr).toContain(said);
  expect(stdout + stderr).not.toContain(value);
});
