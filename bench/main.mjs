// Measures the bundled command on a control plane of its own, beside what the API server itself can do.
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { burst } from './phases/burst.mjs';
import { drift, hot, update } from './phases/changes.mjs';
import { help, rendering, synth } from './phases/local.mjs';
import { jobWatcher } from './phases/job-watcher.mjs';
import { idle, memory, restart } from './phases/rest.mjs';
import { streamIngress } from './phases/stream-ingress.mjs';
import { swept } from './phases/sweep.mjs';
import { Bench } from './support/bench.mjs';
import { Figures } from './support/figures.mjs';
import { machine, writeReport } from './support/report.mjs';
import { root } from './support/util.mjs';

const local = { help, rendering, synth };
const onCluster = {
  memory,
  'burst-1': (bench) => burst(bench, 1),
  'burst-0': (bench) => burst(bench, 0),
  update,
  drift,
  hot,
  idle,
};
/** Each in a control plane of its own. */
const apart = { restart, streamingress: streamIngress, jobwatcher: jobWatcher, sweep: swept };
const names = [local, onCluster, apart].flatMap(Object.keys);

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    scale: { type: 'string', default: '1000' },
    json: { type: 'string', default: join(root, 'lib/bench.json') },
    profile: { type: 'string' },
    'node-options': { type: 'string', default: '' },
    'controller-options': { type: 'string', default: '' },
    help: { type: 'boolean', default: false },
  },
});
const wanted = values.only?.split(',') ?? names;
const unknown = wanted.find((name) => !names.includes(name));
if (values.help || unknown !== undefined || !(Number(values.scale) >= 10)) {
  process.stdout
    .write(`npm run bench -- [--only ${names.join()}] [--scale 1000] [--json FILE] [--profile FOLDER]
    [--node-options "..."] [--controller-options "..."]\n`);
  process.exit(values.help ? 0 : 2);
}

const words = (text) => text.split(' ').filter((word) => word !== '');
const count = Number(values.scale);
const options = {
  count,
  idleSeconds: count >= 1000 ? 60 : 10,
  args: words(values['controller-options']),
  nodeArguments: [
    ...words(values['node-options']),
    ...(values.profile ? ['--cpu-prof', `--cpu-prof-dir=${values.profile}`] : []),
  ],
};

const figures = new Figures();
let about = await machine();

// On Ctrl-C the watchdogs end whatever was started, and this process ends by the signal.
for (const name of wanted.filter((each) => each in local)) {
  process.stderr.write(`${name}\n`);
  local[name]((...figure) => figures.note(...figure));
}
const phases = wanted.filter((name) => name in onCluster);
if (phases.length > 0) {
  const bench = await Bench.start(figures, options);
  about = await machine(bench.cluster.sandbox);
  try {
    for (const name of phases) {
      process.stderr.write(`${name}\n`);
      await onCluster[name](bench);
    }
  } finally {
    await bench.stop();
  }
}
for (const name of wanted.filter((each) => each in apart)) {
  process.stderr.write(`${name}\n`);
  await apart[name](figures, options);
}
about.push(`${count} custom resources, 16 requests at once`);
if (wanted.length < names.length) about.push(`Only the phases ${wanted.join(', ')}`);
writeReport({
  rows: figures.rows,
  about,
  options,
  json: values.json,
  markdown: count >= 1000,
});
