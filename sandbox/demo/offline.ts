import { spawn } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { textOf } from '#cli/diff/text.js';
import { objectId, refOf, type AnyObject } from '#contract/object.js';
import { readYaml } from '#values/yaml.js';
import { outputOf, type KubectlResult } from '../client.js';
import { repoFolder } from '../paths.js';
import type { Stage } from './stage.js';
import { StepFailure } from './observe.js';
import { shellCommand } from './show.js';

/** The tutorial's sample, in the repository. */
export const sampleFile = 'examples/appservice-sample.yaml';

const constructFile = 'src/kinds/app-service/construct.ts';

/** An edit of the sample: a line of it, and what it becomes. */
interface Edit {
  readonly file: string;
  readonly line: string;
  readonly becomes: readonly string[];
}

const edit: Edit = {
  file: 'edited.yaml',
  line: '  size: 2',
  becomes: ['  size: 3', '  disruption: { maxUnavailable: 1 }'],
};

const mistake: Edit = { file: 'mistyped.yaml', line: '  size: 2', becomes: ['  sise: 2'] };

/** Number of lines of rendered YAML that are shown: the whole of the first object. */
const SHOWN_LINES = 30;

/**
 * Shows what needs nothing but Node: the construct, what it renders, what an edit changes in that, and how a mistake is refused.
 *
 * @throws StepFailure
 */
export async function playOffline(stage: Stage): Promise<void> {
  const { show } = stage;
  const source = await readFile(join(repoFolder(), constructFile), 'utf8');
  show.heading('Without a cluster: the construct');
  show.say(
    `The operator is made of this class in ${constructFile}: a custom resource comes in as props, Kubernetes objects come ` +
      'out. Each function that it calls returns the spec of one of them.',
  );
  show.output(classIn(source, 'AppService'));

  const sample = await readFile(join(repoFolder(), sampleFile), 'utf8');
  await Promise.all([edit, mistake].map(({ file, ...change }) => write(stage, file, edited(sample, change))));
  const [rendered, renderedAgain, refused] = await Promise.all([
    synth(stage, repoFolder(), sampleFile),
    synth(stage, stage.folder, edit.file),
    synth(stage, stage.folder, mistake.file),
  ]);

  show.heading('Without a cluster: a custom resource is rendered');
  show.say(
    `This is the whole of what a user writes, ${sampleFile}: an image, how many of it, and the port it is reached at.`,
  );
  show.output(sample);
  expectCode(rendered, 0);
  showSynth(stage, sampleFile, shortened(rendered.stdout));

  show.heading('Without a cluster: an edit, and what it changes');
  show.say('The user wants one more pod, and nodes that are drained to take one pod at a time:');
  show.difference(differenceOf(edit));
  expectCode(renderedAgain, 0);
  showSynth(stage, edit.file);
  show.say('The two renderings, compared as `reconstruct diff` compares with a cluster:');
  show.difference(comparison(objectsIn(rendered.stdout), objectsIn(renderedAgain.stdout)));

  show.heading('Without a cluster: a mistake is refused');
  show.say('The user mistypes a field:');
  show.difference(differenceOf(mistake));
  expectCode(refused, 2);
  showSynth(stage, mistake.file, refused.stderr);
  show.seen(
    `Refused with exit code ${refused.code}: file, line and remedy of each mistake, before a cluster sees it.`,
  );
}

/** Returns a class as it is in a source, from its first line to its last. */
function classIn(source: string, name: string): string {
  const start = source.indexOf(`export class ${name} `);
  const end = source.indexOf('\n}\n', start);
  if (start < 0 || end < 0) throw new Error(`${constructFile} has no class ${name}`);
  return source.slice(start, end + 2);
}

function edited(sample: string, { line, becomes }: Omit<Edit, 'file'>): string {
  const text = sample.replace(`\n${line}\n`, `\n${becomes.join('\n')}\n`);
  if (text === sample) throw new Error(`${sampleFile} has no line "${line}"`);
  return text;
}

function differenceOf({ line, becomes }: Edit): string {
  return [`-${line}`, ...becomes.map((each) => `+${each}`)].join('\n');
}

function write({ folder }: Stage, file: string, text: string): Promise<void> {
  return writeFile(join(folder, file), text);
}

interface SynthResult extends KubectlResult {
  readonly file: string;
}

/** Runs `reconstruct synth` on a file of a folder. */
async function synth({ signal }: Stage, cwd: string, file: string): Promise<SynthResult> {
  const args = [join(repoFolder(), 'lib/cli/main.js'), 'synth', file];
  const child = spawn(process.execPath, args, { cwd, signal, stdio: ['ignore', 'pipe', 'pipe'] });
  return { ...(await outputOf(child, `reconstruct synth ${file}`, 'run it by itself')), file };
}

function expectCode({ file, code, stderr }: SynthResult, expected: number): void {
  if (code === expected) return;
  throw new StepFailure(
    `reconstruct synth ${file} to end with exit code ${expected}`,
    `${code}: ${stderr.trim()}`,
  );
}

function showSynth({ show }: Stage, file: string, output?: string): void {
  show.command(shellCommand(['reconstruct', 'synth', file]));
  if (output !== undefined) show.output(output);
}

/** Returns the first lines, and how many others there are. */
function shortened(text: string): string {
  const lines = text.trimEnd().split('\n');
  const others = lines.length - SHOWN_LINES;
  return others <= 0 ? text : [...lines.slice(0, SHOWN_LINES), `... ${others} more lines`].join('\n');
}

function objectsIn(yaml: string): AnyObject[] {
  return yaml
    .split(/^---\n/m)
    .filter((document) => document !== '')
    .map((document) => readYaml(document) as AnyObject);
}

/** Returns what differs between the objects of two renderings, as `reconstruct diff` prints it. */
function comparison(before: readonly AnyObject[], after: readonly AnyObject[]): string {
  const known = new Map(before.map((object) => [objectId(object), object]));
  const objects = after.flatMap((object) => {
    const was = known.get(objectId(object));
    if (isDeepStrictEqual(was, object)) return [];
    const base = { ref: refOf(object), after: object, takes: [], leaves: [] };
    return was
      ? { ...base, action: 'changed' as const, before: was }
      : { ...base, action: 'created' as const };
  });
  return textOf({ objects, explanations: [] }, (_, text) => text);
}
