import type { ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Clock } from '../../engine/clock.js';
import { kindName } from '../../install/arguments.js';
import { startCommand } from './child.js';
import { readLogLine } from './log-line.js';
import type { LogLine } from './log-line.js';
import type { LoadedKind } from './project.js';
import type { Guard } from './stand.js';

/** To finish what is under way. */
const GRACE_MILLISECONDS = 5_000;

/** What somebody should read. */
export type ControllerLine = Exclude<LogLine, { what: 'started' | 'quiet' }>;

export interface ControllerProps {
  readonly guard: Guard;
  readonly clock: Clock;
  /** The path of the kubeconfig to act with. */
  readonly kubeconfig: string;
  /** @default - there is none */
  readonly config?: string;
  readonly kinds: readonly LoadedKind[];
  /** It works on all kinds. */
  readonly onStarted: () => void;
  /** A warning, an error, or what the author's code prints. */
  readonly onLine: (line: ControllerLine) => void;
  /** It has ended, and nobody has stopped it. @param how as in `exit code 1` */
  readonly onEnd: (how: string) => void;
}

/** `reconstruct run` in a process of its own, which loads the author's code as it is now. */
export class DevController {
  private readonly child: ChildProcess;
  private readonly ended: Promise<void>;
  private readonly waiting: string[];
  private isStopping = false;

  constructor(private readonly props: ControllerProps) {
    this.waiting = props.kinds.map(({ name }) => name);
    this.child = startCommand(argumentsOf(props), ['ignore', 'pipe', 'pipe'], props.guard);
    for (const stream of [this.child.stdout, this.child.stderr])
      if (stream)
        createInterface({ input: stream }).on('line', (line) => {
          this.read(line);
        });
    this.ended = new Promise((resolve) => {
      this.child.once('close', (code, signal) => {
        if (!this.isStopping) props.onEnd(signal ?? `exit code ${code ?? '?'}`);
        resolve();
      });
    });
  }

  /** Lets it finish what is under way, for some seconds. */
  async stop(): Promise<void> {
    this.isStopping = true;
    this.child.kill('SIGTERM');
    const timer = this.props.clock.setTimer(GRACE_MILLISECONDS, () => this.child.kill('SIGKILL'));
    await this.ended;
    timer.cancel();
  }

  async kill(): Promise<void> {
    this.isStopping = true;
    this.child.kill('SIGKILL');
    await this.ended;
  }

  private read(text: string): void {
    if (this.isStopping) return;
    const line = readLogLine(text);
    if (line.what === 'started') this.hasStarted(line.controller);
    else if (line.what !== 'quiet') this.props.onLine(line);
  }

  /** Of kinds of several groups that have one name, each is told of. */
  private hasStarted(name: string): void {
    const index = this.waiting.indexOf(name);
    if (index < 0) return;
    this.waiting.splice(index, 1);
    if (this.waiting.length === 0) this.props.onStarted();
  }
}

function argumentsOf({ kubeconfig, config, kinds }: ControllerProps): string[] {
  return [
    ...['run', '--kubeconfig', kubeconfig, '--kinds', kinds.map(kindName).join(), '--no-leader-elect'],
    ...(config === undefined ? [] : ['--config', config]),
    ...['--metrics-bind-address', '0', '--health-bind-address', '0', '--log-level', 'info'],
  ];
}
