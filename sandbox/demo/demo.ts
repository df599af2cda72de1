import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { repoFolder } from '../paths.js';
import type { DemoCluster, Stage } from './cluster.js';
import { reachContextCluster } from './context-cluster.js';
import type { Controller } from './controller.js';
import { StepFailure, UnreachableError } from './failure.js';
import { nodePorts, parseSample, type Sample, sampleYaml, withImage, withoutNodePorts } from './sample.js';
import { readableLogLine } from './log-line.js';
import { startSandboxCluster } from './sandbox-cluster.js';
import { startController } from './start-controller.js';
import { steps } from './steps.js';
import { type StepResult, summaryLines } from './summary.js';
import { formatTime } from './text.js';

/** The tutorial's sample, in the repository. */
const sampleFile = 'examples/appservice-sample.yaml';

/** Lines of the controller's log that are shown when a step fails. */
const tailLines = 10;

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
  return problems.length > 0 && code === 0 ? 1 : code;
}

class Demo {
  readonly #results: StepResult[] = [];
  readonly #titles: readonly string[];
  #cluster: DemoCluster | undefined;
  #controller: Controller | undefined;

  constructor(private readonly stage: Stage) {
    this.#titles = [
      stage.options.context === undefined ? 'A control plane starts' : 'The cluster is reached',
      stage.options.context === undefined
        ? 'The CRD is installed, rights are given'
        : 'CRD and namespace are made',
      'The controller starts',
      ...steps(sampleFile).map(({ title }) => title),
    ];
  }

  /** **Errors**: those of the step that failed. */
  async play(): Promise<void> {
    const { stage } = this;
    const { context } = stage.options;
    const cluster = await this.#step(() =>
      context === undefined ? startSandboxCluster(stage) : reachContextCluster(stage, context),
    );
    this.#cluster = cluster;
    await this.#step(() => cluster.install());
    const controller = await this.#step(async () => {
      this.#controller = await startController(stage, cluster);
      return this.#controller;
    });
    const [sample, file] = await this.#chooseSample(cluster);
    const scene = { ...stage, cluster, controller, sample };
    for (const step of steps(file)) await this.#step(() => step.run(scene));
  }

  /** Says what went wrong. @returns the exit code */
  explain(error: unknown): number {
    const { show } = this.stage;
    if (error instanceof StepFailure) {
      show.missed(`Expected ${error.expected}.`);
      show.say(`Seen: ${error.seen}`);
    } else {
      show.missed('This step has failed.');
      for (const line of (error instanceof Error ? error.message : String(error)).split('\n'))
        show.plain(line);
    }
    const log = this.#controller?.log() ?? [];
    if (log.length > 0) {
      show.say(`The last lines of the controller's log:`);
      show.output(log.slice(-tailLines).map(readableLogLine).join('\n'));
    }
    return error instanceof UnreachableError ? 3 : 1;
  }

  /** Sums up, unless not even the first step was seen. */
  async sumUp(): Promise<void> {
    const { show } = this.stage;
    if (this.#results[0]?.outcome !== 'seen') return;
    const skipped = this.#titles.slice(this.#results.length);
    const results = [
      ...this.#results,
      ...skipped.map((title) => ({ title, outcome: 'skipped' as const, milliseconds: 0 })),
    ];
    show.heading('Summary');
    for (const line of summaryLines(results)) show.plain(line);
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
  }

  async #step<T>(run: () => Promise<T>): Promise<T> {
    const number = this.#results.length;
    const title = this.#titles[number] ?? '';
    const started = Date.now();
    const add = (outcome: 'seen' | 'missed'): void => {
      this.#results.push({ title, outcome, milliseconds: Date.now() - started });
    };
    this.stage.signal.throwIfAborted();
    this.stage.show.heading(`${number + 1}/${this.#titles.length}  ${title}`);
    try {
      const result = await run();
      add('seen');
      return result;
    } catch (error) {
      add('missed');
      throw error;
    }
  }

  /** The tutorial's sample, or a copy with what this cluster and user need changed. */
  async #chooseSample(cluster: DemoCluster): Promise<[Sample, string]> {
    const { show, options, folder } = this.stage;
    const original = parseSample(await readFile(join(repoFolder(), sampleFile), 'utf8'));
    let sample = options.image === undefined ? original : withImage(original, options.image);
    for (const port of nodePorts(original)) {
      if (await cluster.hasNodePort(port)) continue;
      show.say(
        `The node port ${port}, which the sample asks for, cannot be had in this cluster: the demo uses the sample ` +
          'without it, and the cluster chooses one.',
      );
      sample = withoutNodePorts(sample);
    }
    if (sample === original) return [sample, sampleFile];
    const file = join(folder, 'appservice-sample.yaml');
    await writeFile(file, sampleYaml(sample));
    return [sample, file];
  }
}
