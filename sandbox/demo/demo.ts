import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readYaml, writeYaml } from '#values/yaml.js';
import { repoFolder } from '../paths.js';
import { ManagedProcess } from '../process.js';
import { beginSandbox, reachContextCluster, startSandboxCluster } from './clusters.js';
import type { StartingSandbox } from './clusters.js';
import type { DemoCluster, Sample, Stage } from './stage.js';
import { StepFailure, UnreachableError, until } from './observe.js';
import { playOffline, sampleFile } from './offline.js';
import { formatTime, readableLogLine, shellCommand } from './show.js';
import { steps } from './steps.js';

interface StepResult {
  readonly title: string;
  readonly mark: '✓' | '✗' | '-';
  /** @default - the step was skipped */
  readonly milliseconds?: number;
}

/** Plays the demo, sums up and cleans up. @returns the exit code */
export async function playDemo(stage: Stage): Promise<number> {
  const { show, cleanUp, signal } = stage;
  const demo = new Demo(stage);
  let code = 0;
  try {
    await demo.play();
  } catch (error) {
    if (!signal.aborted) code = demo.explain(error);
  }
  if (!signal.aborted) await demo.sumUp();
  const started = Date.now();
  const problems = await cleanUp.run();
  for (const problem of problems) show.missed(problem);
  if (!signal.aborted) demo.sayFarewell(code, Date.now() - started);
  // A build may take minutes yet: it ends with this process.
  if (demo.isSandboxStarting) process.exit(code);
  return problems.length > 0 && code === 0 ? 1 : code;
}

class Demo {
  readonly #results: StepResult[] = [];
  readonly #titles: readonly string[];
  #sandbox: StartingSandbox | undefined;
  #cluster: DemoCluster | undefined;
  #controller: ManagedProcess | undefined;

  constructor(private readonly stage: Stage) {
    const isSandbox = stage.options.context === undefined;
    this.#titles = [
      isSandbox ? 'A control plane starts' : 'The cluster is reached',
      isSandbox ? 'The CRD is installed, rights are given' : 'CRD and namespace are made',
      'The controller starts',
      ...steps(sampleFile).map(({ title }) => title),
    ];
  }

  /** @throws the error of the step that failed */
  async play(): Promise<void> {
    const { stage } = this;
    const { context } = stage.options;
    const sandbox = (this.#sandbox = context === undefined ? beginSandbox(stage) : undefined);
    await playOffline(stage);
    const cluster = await this.#step(
      () => (sandbox ? startSandboxCluster(stage, sandbox) : reachContextCluster(stage, context ?? '')),
      sandbox?.began,
    );
    this.#cluster = cluster;
    await this.#step(() => cluster.install());
    const controller = await this.#step(() => this.#startController(cluster));
    const [sample, file] = await this.#chooseSample(cluster);
    const scene = { ...stage, cluster, controller, sample };
    for (const step of steps(file)) await this.#step(() => step.run(scene));
  }

  get isSandboxStarting(): boolean {
    return this.#sandbox?.isStarting() ?? false;
  }

  /** Explains what went wrong. @returns the exit code */
  explain(error: unknown): number {
    const { show } = this.stage;
    if (error instanceof StepFailure) {
      show.missed(`Expected ${error.expected}.`);
      show.say(`Seen: ${error.seen}`);
    } else {
      show.missed('This step has failed.');
      show.plain(error instanceof Error ? error.message : String(error));
    }
    const log = this.#controller?.log() ?? [];
    if (log.length > 0) {
      show.say(`The last lines of the controller's log:`);
      show.output(log.slice(-10).map(readableLogLine).join('\n'));
    }
    return error instanceof UnreachableError ? 3 : 1;
  }

  /** Sums up, unless not even the first step was seen. */
  async sumUp(): Promise<void> {
    const { show } = this.stage;
    if (this.#results[0]?.mark !== '✓') return;
    const skipped = this.#titles.slice(this.#results.length).map((title) => ({ title, mark: '-' as const }));
    show.heading('Summary');
    for (const line of summaryLines([...this.#results, ...skipped])) show.plain(line);
    const requests = await this.#cluster?.requests().catch(() => undefined);
    if (requests !== undefined)
      show.say(`By the API server's audit log, the controller has sent ${requests}.`);
    show.say('Times are from this machine, and include running kubectl and printing.');
  }

  sayFarewell(code: number, milliseconds: number): void {
    const { show } = this.stage;
    show.say(`Cleaned up in ${formatTime(milliseconds)}. ${code === 0 ? 'Every step was seen.' : ''}`);
    const farewell = this.#cluster?.farewell ?? [];
    if (farewell.length > 0) show.heading('What is left');
    for (const line of farewell) show.plain(line);
    if (code === 0 && farewell.length === 0)
      show.say(
        'Next: docs/tutorial.md takes an app through its life, docs/your-own-kind.md makes a kind of your own.',
      );
  }

  async #step<T>(run: () => Promise<T>, started = Date.now()): Promise<T> {
    const number = this.#results.length;
    const title = this.#titles[number] ?? '';
    let mark: StepResult['mark'] = '✗';
    this.stage.signal.throwIfAborted();
    this.stage.show.heading(`${number + 1}/${this.#titles.length}  ${title}`);
    try {
      const result = await run();
      mark = '✓';
      return result;
    } finally {
      this.#results.push({ title, mark, milliseconds: Date.now() - started });
    }
  }

  /** Starts the real `reconstruct run`, and waits until it works. */
  async #startController(cluster: DemoCluster): Promise<ManagedProcess> {
    const { show, folder, watchdog, cleanUp, signal } = this.stage;
    show.say(
      'The operator is one process. It lists and watches AppServices and what belongs to them, and starts to work once ' +
        'it has the whole picture.',
    );
    const args = [
      ...['run', '--kinds', 'appservice', ...cluster.controllerArguments],
      ...['--metrics-bind-address', '0', '--health-bind-address', '0'],
    ];
    show.command(shellCommand(['reconstruct', ...args]));
    const dir = repoFolder();
    const controller = await ManagedProcess.start({
      ...{ name: 'the controller', program: process.execPath, dir, env: process.env, watchdog },
      ...{ args: [join(dir, 'lib/cli/main.js'), ...args], logFile: join(folder, 'controller.log') },
    });
    this.#controller = controller;
    cleanUp.add('stop the controller', () => controller.stop());
    await until(
      'the controller to say "controller started"',
      () => {
        const log = controller.log();
        const started = log.some((line) => line.includes('"controller started"'));
        return started ? { found: true } : { seen: log.at(-1) ?? 'nothing in its log' };
      },
      { deadlineMilliseconds: cluster.deadlineMilliseconds, controller, signal },
    );
    show.output(controller.log().map(readableLogLine).join('\n'));
    show.seen(`It runs, as process ${controller.identity.pid}.`);
    return controller;
  }

  /** Returns the tutorial's sample, or a copy with what this cluster and user need changed. */
  async #chooseSample(cluster: DemoCluster): Promise<[Sample, string]> {
    const { show, options, folder } = this.stage;
    const original = readYaml(await readFile(join(repoFolder(), sampleFile), 'utf8')) as Sample;
    const { image = original.spec.image } = options;
    let { ports = [] } = original.spec;
    for (const { nodePort } of ports) {
      if (nodePort === undefined || (await cluster.hasNodePort(nodePort))) continue;
      show.say(
        `The node port ${nodePort}, which the sample asks for, cannot be had in this cluster: the demo uses the sample ` +
          'without it, and the cluster chooses one.',
      );
      ports = ports.map(({ nodePort: _, ...port }) => port);
    }
    if (image === original.spec.image && ports === original.spec.ports) return [original, sampleFile];
    const sample = { ...original, spec: { ...original.spec, image, ports } };
    const file = join(folder, 'appservice-sample.yaml');
    await writeFile(file, writeYaml(sample));
    return [sample, file];
  }
}

/** Returns a line for each step, and one for all of them. */
function summaryLines(results: readonly StepResult[]): string[] {
  const total = results.reduce((sum, { milliseconds = 0 }) => sum + milliseconds, 0);
  const rows = [
    ...results.map(({ title, mark, milliseconds }, index) => ({
      text: `${mark} ${index + 1}. ${title}`,
      time: milliseconds === undefined ? 'skipped' : formatTime(milliseconds),
    })),
    { text: '  All steps', time: formatTime(total) },
  ];
  const text = Math.max(...rows.map((row) => row.text.length));
  const time = Math.max(...rows.map((row) => row.time.length));
  return rows.map((row) => `  ${row.text.padEnd(text)}   ${row.time.padStart(time)}`);
}
