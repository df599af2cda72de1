import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { messageOf } from '../../contract/error.js';
import { programEnded } from '../../telemetry/program.js';
import { CliError } from '../exit.js';
import type { Plan } from './code.js';
import { ownFolder } from './dependency.js';
import type { Files } from './project.js';
import { SNAPSHOT_TEST, snapshotFile } from './tests.js';

/**
 * Records the sample's manifests by the project's own test, in a folder for the moment, with this package and those that
 * it was installed with.
 *
 * @param signal ends it before its time
 * @throws CliError with exit code 2 where cdk8s or constructs isn't installed beside this package, where the test fails, and
 * where it was ended
 */
export async function recordSnapshot(plan: Plan, files: Files, signal: AbortSignal): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'reconstruct-init-'));
  try {
    writeFiles(folder, files);
    link(folder, plan.library, ownFolder);
    for (const name of ['cdk8s', 'constructs']) link(folder, name, peer(name));
    const { NODE_TEST_CONTEXT: _, NODE_OPTIONS: __, ...env } = process.env;
    const args = ['--test-update-snapshots', SNAPSHOT_TEST];
    const { code, output } = await ended(spawn(process.execPath, args, { cwd: folder, env }), signal);
    if (signal.aborted) throw new CliError('Interrupted; nothing was written', 2);
    if (code !== 0) throw notRecorded(output);
    return readFileSync(join(folder, snapshotFile(plan)), 'utf8');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Waits until a process is gone, which holds files as long as it is there. */
async function ended(
  child: ChildProcess,
  signal: AbortSignal,
): Promise<{ readonly code: number | null; readonly output: string }> {
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const kill = (): void => void child.kill('SIGKILL');
  signal.addEventListener('abort', kill);
  if (signal.aborted) kill();
  const what = `the project's own test, ${SNAPSHOT_TEST}`;
  try {
    const { code } = await programEnded(child, { what, remedy: 'nothing was written; try again' });
    return { code, output };
  } catch (error) {
    throw new CliError(messageOf(error), 2);
  } finally {
    signal.removeEventListener('abort', kill);
  }
}

function notRecorded(output: string): CliError {
  return new CliError(
    [
      ...output.trimEnd().split('\n'),
      '',
      "The project doesn't pass its own test, so nothing was written. Where cdk8s and constructs are installed beside " +
        `${ownFolder} in versions that it isn't made for, install others; or give another --kind or other --children`,
    ],
    2,
  );
}

export function writeFiles(folder: string, files: Files): void {
  for (const [path, content] of Object.entries(files)) {
    const file = join(folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content, { flag: 'wx' });
  }
}

function link(folder: string, name: string, target: string): void {
  const path = join(folder, 'node_modules', name);
  mkdirSync(dirname(path), { recursive: true });
  symlinkSync(target, path, 'junction');
}

/** Where a package is that was installed with this one. */
function peer(name: string): string {
  for (let folder = ownFolder; dirname(folder) !== folder; folder = dirname(folder)) {
    const found = join(folder, 'node_modules', name);
    if (existsSync(found)) return found;
  }
  throw new CliError(
    `${name} isn't installed beside ${ownFolder}: "npm install cdk8s constructs" there, and try again`,
    2,
  );
}
