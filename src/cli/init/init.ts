import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { messageOf } from '../../contract/error.js';
import { CliError } from '../exit.js';
import { constructModule, kindModule } from './code.js';
import type { Plan } from './code.js';
import { ownDependency } from './dependency.js';
import { designOf } from './design.js';
import { isFreshManifest } from './manifest.js';
import type { PackageManifest } from './manifest.js';
import { DEFAULT_GROUP, namesOf, refused } from './names.js';
import { projectFiles } from './project.js';
import type { Files } from './project.js';
import { recordSnapshot, writeFiles } from './snapshot.js';
import { operatorTest, snapshotFile, snapshotTest, sweepProgram } from './tests.js';

export interface InitProps {
  readonly children: readonly string[];
  /** @default example.com */
  readonly group?: string;
  /** @default - the name in PascalCase */
  readonly kind?: string;
  /** See `ownDependency`. */
  readonly package?: string;
}

/**
 * Makes a project.
 *
 * @param name of the project and its folder; or `.`, the working directory, whose name is the project's
 * @param signal ends it before anything is written
 * @returns what to tell the user
 * @throws CliError with exit code 2 where it can't be made; then nothing was written
 */
export async function initProject(name: string, props: InitProps, signal: AbortSignal): Promise<string> {
  const isHere = name === '.';
  const names = namesOf(isHere ? basename(resolve(name)) : name, props.group, props.kind);
  const design = designOf(props.children);
  const earlier = requireFree(name);
  const dependency = ownDependency(props.package);
  const plan = withFreeNames({ names, design, library: dependency.name });
  const files = projectFiles(plan, dependency, earlier);
  const all = { ...files, [snapshotFile(plan)]: await recordSnapshot(plan, files, signal) };
  fill(name, all, earlier);
  return [
    `${names.kind} of ${names.group}/v1, which makes ${design.children.join(', ')}:`,
    ...Object.keys(all)
      .sort()
      .map((path) => `  ${isHere ? path : `${name}/${path}`}`),
    ...(names.group === DEFAULT_GROUP
      ? [
          `The group is ${DEFAULT_GROUP}, which is nobody's: give a domain of yours with --group, before others use the kind`,
        ]
      : []),
    'Next:',
    ...(isHere ? [] : [`  cd ${name}`]),
    '  npm install',
    '  npm test     # the first time a control plane is built, with Go, which takes some minutes',
    '  npm run dev  # runs the operator with the sample, and takes up what you save',
    '',
  ].join('\n');
}

const MANIFEST = 'package.json';
/** What a folder may hold that a project is written to. */
const HARMLESS = ['node_modules', MANIFEST, 'package-lock.json', '.git'];

/**
 * @returns what `npm init -y` wrote in the folder, if it did
 * @throws CliError with exit code 2 where something is in the way
 */
export function requireFree(folder: string): PackageManifest | undefined {
  if (!existsSync(folder)) {
    requireParent(folder);
    return undefined;
  }
  if (!statSync(folder).isDirectory())
    throw new CliError(`${folder} is there already, and no folder; give another name`, 2);
  const others = readdirSync(folder).filter((name) => !HARMLESS.includes(name));
  if (others.length > 0) throw inTheWay(folder, others);
  const manifest = join(folder, MANIFEST);
  if (!existsSync(manifest)) return undefined;
  const found = manifestIn(manifest);
  if (!isFreshManifest(found))
    throw inTheWay(folder, [`${MANIFEST}, which has more in it than "npm init -y" writes,`]);
  return found;
}

/**
 * Writes all files, or none. What is there stays, but for the manifest of `npm init -y`.
 * @param earlier that manifest, as it was found. @default - there was none
 * @throws CliError with exit code 2 where something is in the way by now, or can't be written
 */
export function fill(folder: string, files: Files, earlier?: PackageManifest): void {
  const target = resolve(folder);
  const isNew = !existsSync(target);
  const staging = mkdtempSync(join(isNew ? dirname(target) : target, `.${basename(target)}-`));
  const made: string[] = [];
  const move = (name: string): void => {
    renameSync(join(staging, name), join(target, name));
    made.push(join(target, name));
  };
  try {
    writeFiles(staging, files);
    if (isNew) {
      mkdirSync(target);
      made.push(target);
    }
    const names = readdirSync(staging).filter((name) => name !== MANIFEST);
    for (const name of names) {
      if (existsSync(join(target, name))) throw inTheWay(folder, [name]);
      move(name);
    }
    if (!isAsFound(join(target, MANIFEST), earlier)) throw inTheWay(folder, [MANIFEST]);
    // Last, since the one that it replaces can't be had back.
    move(MANIFEST);
  } catch (error) {
    for (const place of made.reverse()) takeBack(place, target);
    throw error instanceof CliError
      ? error
      : new CliError(`${folder}: can't be written: ${messageOf(error)}; nothing was left there`, 2);
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}

function isAsFound(manifest: string, earlier: PackageManifest | undefined): boolean {
  return isDeepStrictEqual(existsSync(manifest) ? manifestIn(manifest) : undefined, earlier);
}

/** What somebody else has put into the folder meanwhile stays, and the folder with it. */
function takeBack(place: string, target: string): void {
  if (place !== target) rmSync(place, { recursive: true });
  else if (readdirSync(target).length === 0) rmdirSync(target);
}

function requireParent(folder: string): void {
  const parent = dirname(resolve(folder));
  if (!existsSync(parent)) throw new CliError(`${parent}: there is no such folder; make it first`, 2);
}

function manifestIn(file: string): PackageManifest {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as PackageManifest;
  } catch (error) {
    throw new CliError(`${file}: ${messageOf(error)}; mend or remove it`, 2);
  }
}

function inTheWay(folder: string, names: readonly string[]): CliError {
  const are = names.length === 1 ? 'is' : 'are';
  return new CliError(
    `${folder}: ${names.join(', ')} ${are} in the way, and nothing is overwritten; move ${are === 'is' ? 'it' : 'them'}, or give another name`,
    2,
  );
}

/** Stands for the names that are looked for. */
const BLANK = '_';

/**
 * The plan with a constant whose name the modules and the language leave free.
 *
 * @throws CliError with exit code 2 where the class of the construct would have a name that its modules need
 */
export function withFreeNames(plan: Plan): Plan {
  const { kind, file, variable } = plan.names;
  const blank = { ...plan, names: { ...plan.names, kind: BLANK, variable: BLANK } };
  const construct = kindModule(blank);
  if (isModule(file) || kind === 'Object' || namesIn(constructModule(blank), construct).has(kind))
    throw refused('--kind', kind, 'the project has something of that name already; choose another');
  const taken = namesIn(construct, snapshotTest(blank), operatorTest(blank), sweepProgram(blank));
  const isTaken = RESERVED.has(variable) || taken.has(variable);
  return isTaken ? { ...plan, names: { ...plan.names, variable: `${variable}Kind` } } : plan;
}

function isModule(file: string): boolean {
  return ['crd', 'kind'].includes(file);
}

/** Whatever may be the name of a variable, a function or a type there: no member of an object, no text, no comment. */
function namesIn(...modules: readonly string[]): Set<string> {
  const text = modules.join('\n').replaceAll(COMMENT_OR_TEXT, "''");
  return new Set(text.match(NAME));
}

const COMMENT_OR_TEXT = /\/\*[^]*?\*\/|\/\/.*|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"/g;
const NAME = /(?<!\w|[^.]\.)[A-Za-z]\w*\b(?!:)/g;

/** What the language keeps to itself. */
const RESERVED = new Set([
  ...['break', 'case', 'catch', 'class', 'const', 'continue', 'debugger', 'default', 'delete', 'do', 'else'],
  ...['enum', 'export', 'extends', 'false', 'finally', 'for', 'function', 'if', 'import', 'in', 'instanceof'],
  ...['new', 'null', 'return', 'super', 'switch', 'this', 'throw', 'true', 'try', 'typeof', 'var', 'void'],
  ...['while', 'with', 'await', 'implements', 'interface', 'let', 'package', 'private', 'protected'],
  ...['public', 'static', 'yield', 'arguments', 'eval', 'undefined'],
]);
