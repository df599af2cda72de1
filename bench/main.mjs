// Measures the bundled command beside an operator written with controller-runtime, on a control plane of the bench's own.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { coldBurst } from './phases/bursts.mjs';
import { children } from './phases/children.mjs';
import { jobWatcher } from './phases/job-watcher.mjs';
import { life, restartOverMany } from './phases/life.mjs';
import { help, rendering, synth } from './phases/local.mjs';
import { streamIngress } from './phases/stream-ingress.mjs';
import { Bench } from './support/bench.mjs';
import { buildPeer, ours } from './support/operators.mjs';
import { Figures, machine, writeReport } from './support/report.mjs';
import { root } from './support/util.mjs';

/** Each for one operator after the other, on one control plane, from which everything is deleted in between. */
const sideBySide = {
  children,
  'cold-0': (bench) => coldBurst(bench, 0),
  'cold-1': (bench) => coldBurst(bench, 1),
  life,
};
/** Of ours alone, or in a control plane of its own. */
const apart = {
  help,
  rendering,
  synth,
  restart: restartOverMany,
  streamingress: streamIngress,
  jobwatcher: jobWatcher,
};
const names = [...Object.keys(sideBySide), ...Object.keys(apart)];

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    scale: { type: 'string', default: '1000' },
    json: { type: 'string', default: join(root, 'lib/bench.json') },
    profile: { type: 'string' },
    from: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});
const wanted = values.only?.split(',') ?? names;
const unknown = wanted.find((name) => !names.includes(name));
if (values.help || unknown !== undefined || !(Number(values.scale) >= 10)) {
  process.stdout.write(
    `npm run bench -- [--only ${names.join()}] [--scale 1000] [--json FILE] [--profile FOLDER] [--from FILE]\n`,
  );
  process.exit(values.help ? 0 : 2);
}
if (values.from) {
  const { rows, ...rest } = JSON.parse(readFileSync(values.from, 'utf8'));
  process.stdout.write(writeReport({ figures: new Figures(rows), ...rest, isComplete: true }));
  process.exit(0);
}

const count = Number(values.scale);
const options = {
  count,
  idleSeconds: count >= 1000 ? 30 : 10,
  nodeArguments: values.profile ? ['--cpu-prof', `--cpu-prof-dir=${values.profile}`] : [],
};
const figures = new Figures();
const operators = [ours, await buildPeer()];
const phases = wanted.filter((name) => name in sideBySide);
let about = await machine();
const measured = [];

/** Writes what there is so far: a run may take an hour, and be interrupted. Returns it. */
function report(phase) {
  measured.push(phase);
  const lines = [`${count} custom resources, 16 in work at once`, `The phases ${measured.join(', ')}`];
  return writeReport({
    ...{ figures, about: [...about, ...lines], json: values.json, isComplete: count >= 1000 },
    operators: operators.map(({ name }) => name),
  });
}

// On Ctrl-C the watchdogs end whatever was started, and this process ends by the signal.
let text = '';
if (phases.length > 0) {
  const bench = await Bench.start(figures, options);
  about = await machine(bench.cluster.sandbox);
  try {
    for (const name of phases) {
      for (bench.operator of operators) {
        process.stderr.write(`${name}, ${bench.operator.name}\n`);
        await sideBySide[name](bench);
        await bench.cleanUp();
      }
      text = report(name);
    }
  } finally {
    await bench.stop();
  }
}
for (const name of wanted.filter((each) => each in apart)) {
  process.stderr.write(`${name}\n`);
  for (const operator of name === 'restart' ? operators : [ours])
    await apart[name](figures, options, operator);
  text = report(name);
}
process.stdout.write(text);
