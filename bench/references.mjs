// References by name, all in one namespace: what they cost the operator from its start, at rest, and on a change.
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Audit } from './support/audit.mjs';
import { BenchCluster, CONCURRENCY, headOf } from './support/cluster.mjs';
import { COMMAND, OperatorProcess, ours } from './support/operators.mjs';
import { reading } from './support/reading.config.mjs';
import { each, until } from './support/util.mjs';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    names: { type: 'string', default: '10000' },
    objects: { type: 'string' },
    idle: { type: 'string', default: '30' },
  },
});
const names = Number(values.names);
const objects = Number(values.objects ?? names);
const configMap = { apiVersion: 'v1', kind: 'ConfigMap', plural: 'configmaps', namespaced: true };
const config = fileURLToPath(new URL('support/reading.config.mjs', import.meta.url));

const cluster = await BenchCluster.start({ kinds: [reading], apiOnly: true });
try {
  const namespace = await cluster.makeNamespace('readings');
  const head = (type, index) => ({ ...headOf(type), metadata: { namespace, name: `r${index}` } });
  await each([...Array(objects).keys()], CONCURRENCY, (index) =>
    cluster.create(configMap, { ...head(configMap, index), data: { text: 'x'.repeat(200) } }),
  );
  await each([...Array(names).keys()], CONCURRENCY, (index) =>
    cluster.create(reading.type, { ...head(reading.type, index), spec: { from: `r${index}` } }),
  );
  // The first writes the statuses; what is measured is what the next ones have to do.
  for (const command of [COMMAND, ...(positionals.length > 0 ? positionals : [COMMAND])])
    process.stdout.write(`${JSON.stringify({ command, ...(await measured(command, namespace)) })}\n`);
} finally {
  await cluster.stop();
}

async function measured(command, namespace) {
  const operator = {
    ...ours,
    command: (options) => ours.command(options).map((word) => (word === COMMAND ? command : word)),
  };
  const audit = new Audit(cluster.sandbox.auditLogPath, cluster.user);
  const mark = audit.mark();
  const process = await OperatorProcess.start(operator, cluster, { args: ['--config', config] });
  // Each key is planned once before its answer is known, and once after.
  await until('all to be known', () => process.idle(2 * names), { milliseconds: 900_000, every: 500 });
  const seconds = (performance.now() - process.started) / 1000;
  const start = { seconds, cpu: process.cpuSeconds, peak: process.resident.peak };
  const asked = audit.since(mark).filter(({ what }) => what === 'configmaps');
  await delay(Number(values.idle) * 1000);
  const idle = { cpu: process.cpuSeconds - start.cpu, resident: process.resident.now };
  const before = process.cpuSeconds;
  for (let index = 0; index < 100; index++)
    await cluster.patch(configMap, namespace, `r${index}`, {
      data: { at: `${command} ${performance.now()}` },
    });
  await until('all to be followed', () => process.idle(2 * names + 100), { milliseconds: 60_000 });
  const changes = { cpu: process.cpuSeconds - before };
  await process.stop();
  const requests = Object.fromEntries(
    [...Map.groupBy(asked, ({ verb }) => verb)].map(([verb, all]) => [verb, all.length]),
  );
  return { names, objects, start, requests, idle, changes };
}
