import type { ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { objectKey } from '../../contract/object.js';
import { kindName } from '../../install/names.js';
import { startCommand } from './load.js';
import type { LoadedKind } from './load.js';
import type { Guard } from './stand.js';
import type { Tone } from './view.js';

/** Time to finish work in progress. */
const GRACE_MILLISECONDS = 5_000;

/** A failure of a custom resource, which its status may show as well. */
export interface Failure {
  /** As in `Note default/hello`. */
  readonly of: string;
  /** One line of why. */
  readonly cause: string;
}

/** A warning or error of the controller, or output of the author's code. */
export interface ControllerLine {
  readonly tone: Tone;
  readonly text: string;
  readonly failure?: Failure;
}

export interface ControllerProps {
  readonly guard: Guard;
  readonly kubeconfig: string;
  readonly config?: string;
  readonly kinds: readonly LoadedKind[];
  /** Called once the controllers of all kinds run. */
  readonly onStarted: () => void;
  readonly onLine: (line: ControllerLine) => void;
  /** Called when it has ended unexpectedly. @param how as in `exit code 1` */
  readonly onEnd: (how: string) => void;
}

/** `reconstruct run` in a process of its own, with the author's code as it is now. */
export class DevController {
  private readonly child: ChildProcess;
  private readonly ended: Promise<void>;
  private isStopping = false;

  constructor({ guard, kubeconfig, config, kinds, onStarted, onLine, onEnd }: ControllerProps) {
    const args = [
      ...['run', '--kubeconfig', kubeconfig, '--kinds', kinds.map(kindName).join(), '--no-leader-elect'],
      ...(config === undefined ? [] : ['--config', config]),
      ...['--metrics-bind-address', '0', '--health-bind-address', '0', '--log-level', 'info'],
    ];
    this.child = startCommand(args, ['ignore', 'pipe', 'pipe'], guard);
    // Kinds of several groups may have the same name.
    const starting = kinds.map(({ name }) => name);
    const read = (text: string): void => {
      if (this.isStopping) return;
      const line = readLogLine(text);
      if (line === undefined) return;
      if (typeof line !== 'string') onLine(line);
      else if (starting.includes(line)) {
        starting.splice(starting.indexOf(line), 1);
        if (starting.length === 0) onStarted();
      }
    };
    for (const input of [this.child.stdout, this.child.stderr])
      if (input) createInterface({ input }).on('line', read);
    this.ended = new Promise((resolve) => {
      this.child.once('close', (code, signal) => {
        if (!this.isStopping) onEnd(signal ?? `exit code ${code ?? '?'}`);
        resolve();
      });
    });
  }

  /** @param graceMilliseconds to finish work in progress */
  async stop(graceMilliseconds = GRACE_MILLISECONDS): Promise<void> {
    this.isStopping = true;
    if (graceMilliseconds > 0) this.child.kill('SIGTERM');
    const timer = setTimeout(() => this.child.kill('SIGKILL'), graceMilliseconds);
    await this.ended;
    clearTimeout(timer);
  }
}

interface Entry {
  readonly level?: string;
  readonly msg?: string;
  readonly controller?: string;
  readonly kind?: string;
  readonly namespace?: string;
  readonly name?: string;
  readonly err?: { readonly message?: string };
  readonly error?: unknown;
  readonly reason?: unknown;
}

/**
 * Reads a line of the controller's output.
 *
 * @returns a line to show, the name of a controller that has started, or undefined for what isn't shown
 */
export function readLogLine(line: string): ControllerLine | string | undefined {
  const entry = parsed(line);
  if (!entry) return { tone: 'news', text: line };
  const { level = '', msg = '', controller, kind, namespace, name, err, error, reason } = entry;
  if (/^controller started$/i.test(msg) && controller !== undefined) return controller;
  if (!['warn', 'error', 'fatal'].includes(level)) return undefined;
  const key = name === undefined ? [] : [objectKey(namespace, name)];
  const subject = [...[kind ?? controller ?? []].flat(), ...key].join(' ');
  const texts = [err?.message, error, reason].filter((text) => typeof text === 'string');
  // The rest is in the status.
  const [cause = ''] = (texts[0] ?? '').split('\n');
  const isOfObject = kind !== undefined && name !== undefined && cause !== '';
  return {
    tone: level === 'warn' ? 'warning' : 'error',
    text: [...(subject ? [subject] : []), msg, ...(cause === '' || msg.includes(cause) ? [] : [cause])].join(
      ': ',
    ),
    ...(isOfObject && { failure: { of: subject, cause } }),
  };
}

function parsed(line: string): Entry | undefined {
  try {
    const value: unknown = JSON.parse(line);
    const isEntry = typeof value === 'object' && value !== null && 'level' in value && 'msg' in value;
    return isEntry ? (value as Entry) : undefined;
  } catch {
    return undefined;
  }
}
