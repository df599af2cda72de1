import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { messageOf } from '../../contract/error.js';
import { groupKind } from '../../contract/resource.js';
import { CONFIG_FILE, loadKinds } from '../config.js';
import { CliError, print } from '../output.js';
import {
  DEFAULT_CHILDREN,
  DEFAULT_GROUP,
  ownDependency,
  ownFolder,
  readChildren,
  readNames,
  refuseUnless,
  SERVERS,
  TASKS,
} from './options.js';
import type { Dependency, Names } from './options.js';

interface InitOptions {
  readonly group?: string;
  readonly kind?: string;
  readonly package?: string;
  readonly children?: readonly string[];
}

/**
 * `reconstruct init`: creates a project for a new kind from the template, or adds a kind to the project of the working directory.
 *
 * @param name of the project and its folder; or `.`, the working directory, whose name is the project's
 * @throws CliError with exit code 2 where it can't be created; then nothing was written
 */
export async function runInit(name: string, options: InitOptions): Promise<void> {
  if (existsSync(CONFIG_FILE)) return addKind(name, options);
  const isHere = name === '.';
  const names = readNames(isHere ? basename(resolve(name)) : name, options.group, options.kind);
  const children = readChildren(options.children ?? DEFAULT_CHILDREN);
  const earlier = requireFree(name);
  const files = projectFiles(names, children, ownDependency(options.package), earlier);
  await write(names, children, name, files, [
    ...(names.group === DEFAULT_GROUP ? [PLACEHOLDER] : []),
    'Next:',
    ...(isHere ? [] : [`  cd ${name}`]),
    '  npm install',
    '  npm test     # the first time, the programs of a control plane are fetched',
    '  npm run dev  # runs the operator with the sample, and reloads what you save',
  ]);
}

/** @throws CliError with exit code 2 where it can't be added; then nothing was written */
async function addKind(name: string, options: InitOptions): Promise<void> {
  const another = 'this folder is a project already; give the name of another kind, as in "init order"';
  refuseUnless(name !== '.', CONFIG_FILE, another);
  const none = 'a kind is added to the project here, which depends on a package already; leave it out';
  refuseUnless(options.package === undefined, '--package', none);
  const kinds = await loadKinds({ builtIn: [] });
  const names = readNames(name, options.group ?? kinds[0]?.crd.spec.group, options.kind);
  const children = readChildren(options.children ?? DEFAULT_CHILDREN);
  const type = `${names.kind}.${names.group}`;
  const isNew = !kinds.some((kind) => groupKind(kind.type) === type);
  refuseUnless(isNew, CONFIG_FILE, `it has a kind ${type} already`);
  const ofKind = filesBelow(TEMPLATE).filter((path) => path.includes('gizmo'));
  const files = filledTemplate(ofKind, names, children);
  const sample = `samples/${names.file}.yaml`;
  // Children have the name of their custom resource, and that of the first kind's sample is taken.
  files.set(sample, String(files.get(sample)).replace('  name: hello\n', `  name: ${names.file}\n`));
  const places = [`src/${names.file}`, sample, `test/${names.file}`];
  const taken = places.filter((place) => existsSync(place)).join(', ');
  refuseUnless(taken === '', taken, 'in the way, and nothing is overwritten; give another name, or move it');
  const config = withKind(readFileSync(CONFIG_FILE, 'utf8'), names);
  if (config.text !== undefined) files.set(CONFIG_FILE, config.text);
  await write(names, children, '.', files, [
    ...(config.text === undefined
      ? [`Add it to ${CONFIG_FILE}, whose list "kinds" is written another way:`, `  ${config.line}`]
      : []),
    ...['Next:', '  npm test', `  node test/${names.file}/sweep.ts`],
  ]);
}

/** Writes the files, and prints their paths. @param next lines that are printed behind */
async function write(
  { kind, group }: Names,
  children: readonly string[],
  folder: string,
  files: Files,
  next: readonly string[],
): Promise<void> {
  const paths = [...files.keys()].sort().map((path) => join(folder, path));
  try {
    for (const [path, content] of files) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), content);
    }
  } catch (error) {
    throw new CliError(`${folder}: can't be written: ${messageOf(error)}`);
  }
  const title = `${kind} of ${group}/v1, which creates ${children.join(', ')}:`;
  await print(`${[title, ...paths.map((path) => `  ${path}`), ...next].join('\n')}\n`);
}

/** Matches `  kinds: [webKind]`, not behind the beginning of a comment. */
const KINDS = /^(?![ \t]*\*)((?:(?!\/[/*]).)*?\b)kinds: \[([\w$\s,]*)\]/gm;

/** Returns the line that imports a kind, and a configuration with it; no text unless it has one list of names alone. */
export function withKind(config: string, names: Names): { readonly line: string; readonly text?: string } {
  const line = `import { kind as ${constantOf(names)} } from './src/${names.file}/kind.ts';`;
  const [list, another] = config.matchAll(KINDS);
  if (!list || another) return { line };
  const [whole, before = '', listed = ''] = list;
  const items = [...listed.split(',').map((item) => item.trim()), constantOf(names)].filter(Boolean);
  const edited = `${config.slice(0, list.index)}${before}kinds: [${items.join(', ')}]${config.slice(list.index + whole.length)}`;
  const last = [...edited.matchAll(/^#!.*\r?\n|^import\b[^;]*;\r?\n/gm)].at(-1);
  const end = last ? last.index + last[0].length : 0;
  return { line, text: `${edited.slice(0, end)}${line}\n${edited.slice(end)}` };
}

/** Returns a name such as `guestBookKind`. */
function constantOf({ file }: Names): string {
  return `${file.replace(/-([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())}Kind`;
}

const PLACEHOLDER = `The group ${DEFAULT_GROUP} is a placeholder: give a domain of yours with --group, before others use the kind`;

type Files = ReadonlyMap<string, string | Buffer>;

const MANIFEST = 'package.json';
const TEMPLATE = join(ownFolder, 'templates/init');
/** Files that npm would leave out of a package, or read as its own, under their names in a project. */
const RENAMED: Readonly<Record<string, string>> = {
  dockerignore: '.dockerignore',
  gitignore: '.gitignore',
  'package.template.json': MANIFEST,
};

/** @param earlier what `npm init -y` has written; its author and the like stay */
function projectFiles(
  names: Names,
  children: readonly string[],
  { name: library, spec, tarball }: Dependency,
  earlier: Manifest | undefined,
): Files {
  const files = filledTemplate(filesBelow(TEMPLATE), names, children, tarball !== undefined);
  const manifest = JSON.parse(String(files.get(MANIFEST))) as Manifest;
  files.set(MANIFEST, `${JSON.stringify(merged(manifest, { [library]: spec }, earlier), null, 2)}\n`);
  if (tarball) files.set(tarball.path, tarball.content);
  return files;
}

/** Returns files of the template for these children: parts for others are left out, and names are put in. */
function filledTemplate(
  paths: readonly string[],
  names: Names,
  children: readonly string[],
  hasTarball = false,
): Map<string, string | Buffer> {
  const server = SERVERS.find((child) => children.includes(child));
  const isScaled = server !== undefined && server !== 'DaemonSet';
  const present = new Set<string>([
    ...children,
    ...(server ? ['server'] : []),
    ...(isScaled && !children.includes('HorizontalPodAutoscaler') ? ['replicas'] : []),
    ...(server || TASKS.some((task) => children.includes(task)) ? ['workload'] : []),
    ...(hasTarball ? ['vendor'] : []),
  ]);
  const values: Readonly<Record<string, string>> = {
    'gizmos.example.org': names.group,
    'gizmo-project': names.project,
    GizmoChildren: children.join(', '),
    GizmoServer: server ?? '',
    Gizmo: names.kind,
    gizmoKind: constantOf(names),
    gizmo: names.file,
  };
  const named = (text: string): string =>
    text.replace(
      /gizmos\.example\.org|gizmo-project|Gizmo(Children|Server)?|gizmo(Kind)?/g,
      (name) => values[name] ?? name,
    );
  const files = new Map<string, string | Buffer>();
  for (const path of paths) {
    const text = named(withoutOthers(readFileSync(join(TEMPLATE, path), 'utf8'), present));
    files.set(RENAMED[path] ?? named(path), text);
  }
  return files;
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => statSync(join(folder, path)).isFile())
    .sort();
}

/**
 * Matches `  // if: Service & !Ingress` and the lines that it is about: comments, a line, what is indented below it, and a bracket
 * that closes it.
 */
const PART =
  /^( *)(?:\/\/|#) if: (.+)\n((?:\1(?:\/\/|#).*\n)*.*\n(?:\1 .*\n|\n)*(?:\1[}\])].*\n(?:\1 .*\n|\n)*)*)/gm;

function withoutOthers(text: string, present: ReadonlySet<string>): string {
  const isTrue = (term: string): boolean =>
    term.startsWith('!') ? !present.has(term.slice(1)) : present.has(term);
  const chosen = (all: string): string =>
    all.replace(PART, (_, __, condition: string, part: string) =>
      condition.split(' | ').some((terms) => terms.split(' & ').every(isTrue)) ? chosen(part) : '',
    );
  return (
    chosen(text)
      // As prettier formats what is left.
      .replace(/\n\n(?= *[}\])])/g, '\n')
      .replace(/\{\n *\}/g, '{}')
      .replace(/\[\n *(\S.*),\n *\]/g, '[$1]')
      .replace(/import \{([^}]*),\n\}/g, (_, names: string) => `import {${names.replaceAll(/\n\s*/g, ' ')} }`)
      // A mapping in YAML without members would be null.
      .replace(/^spec:\n$/m, 'spec: {}\n')
  );
}

type Manifest = Readonly<Record<string, unknown>>;

/** Returns the template's package.json, with what an earlier one has beside it. */
function merged(template: Manifest, dependency: object, earlier: Manifest = {}): Manifest {
  const kept = Object.entries(earlier).filter(
    ([key, value]) => !(key in template) && key !== 'main' && String(value) !== '',
  );
  const both = (member: string, ...others: unknown[]): object =>
    Object.assign({}, earlier[member], ...others, template[member]) as object;
  return {
    ...{ ...template, version: earlier.version ?? template.version, ...Object.fromEntries(kept) },
    dependencies: both('dependencies', dependency),
    devDependencies: both('devDependencies'),
  };
}

/** Left by `npm init`, `npm install` and `git init`. */
const HARMLESS = ['node_modules', MANIFEST, 'package-lock.json', '.git'];

/**
 * Requires a folder that a project can be written to.
 *
 * @returns the manifest of `npm init -y` in it, if there is one
 * @throws CliError with exit code 2 where something is in the way
 */
function requireFree(folder: string): Manifest | undefined {
  if (!existsSync(folder)) return undefined;
  if (!statSync(folder).isDirectory())
    throw new CliError(`${folder} already exists, and is no folder; give another name`);
  const others = readdirSync(folder).filter((name) => !HARMLESS.includes(name));
  const file = join(folder, MANIFEST);
  let manifest: Manifest | undefined;
  try {
    if (existsSync(file)) manifest = JSON.parse(readFileSync(file, 'utf8')) as Manifest;
  } catch (error) {
    throw new CliError(`${file}: ${messageOf(error)}; correct or remove it`);
  }
  const { scripts = {}, main = 'index.js' } = manifest ?? {};
  const isOwn = (script: unknown): boolean => !String(script).includes('no test specified');
  if (main !== 'index.js' || Object.values(scripts as object).some(isOwn))
    others.push(`${MANIFEST} (more than "npm init -y" writes)`);
  if (others.length === 0) return manifest;
  throw new CliError(
    `${folder}: in the way, and nothing is overwritten: ${others.join(', ')}; move them, or give another name`,
  );
}
