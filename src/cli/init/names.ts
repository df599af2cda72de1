import { isGroup, isKind, isKubernetesGroup, isLabel } from '../../contract/names.js';
import { CliError } from '../exit.js';

/** What a project and its kind are called. */
export interface Names {
  /** Of the project: its folder, its package and, by default, its image. */
  readonly project: string;
  readonly group: string;
  /** In PascalCase: the kind, and the class of its construct. */
  readonly kind: string;
  /** In kebab-case: of the files. */
  readonly file: string;
  /** The constant that holds the kind: the kind in camelCase, or with a word more where that is taken. */
  readonly variable: string;
}

export const DEFAULT_GROUP = 'example.com';

/**
 * @param kind @default - the name of the project in PascalCase
 * @throws CliError with exit code 2 for what can't be a name
 */
export function namesOf(project: string, group = DEFAULT_GROUP, kind = pascalCase(project)): Names {
  checkProject(project);
  checkGroup(group);
  checkKind(kind);
  const file = kebabCase(kind);
  return { project, group, kind, file, variable: kind.charAt(0).toLowerCase() + kind.slice(1) };
}

function checkProject(name: string): void {
  if (isLabel(name)) return;
  throw refused(
    'NAME',
    name,
    `a project is named in at most 63 lower-case letters, digits and "-", with a letter first, as in ${near(name)}`,
  );
}

function checkGroup(group: string): void {
  if (isKubernetesGroup(group))
    throw refused('--group', group, 'it is reserved for Kubernetes; give a domain of yours');
  if (isGroup(group)) return;
  throw refused(
    '--group',
    group,
    'a group is a domain in lower case, at best one of yours, as in web.example.com',
  );
}

function checkKind(kind: string): void {
  if (/^(y|n|yes|no|on|off|true|false|null)$/i.test(kind))
    throw refused('--kind', kind, 'in YAML it is no text but true, false or nothing; choose another');
  if (isKind(kind)) return;
  throw refused(
    '--kind',
    kind,
    `a kind is written in PascalCase, in the singular, with at most 63 letters and digits, as in ${pascalCase(near(kind))}`,
  );
}

/** @param what as in `--kind` @param remedy why, and what to do */
export function refused(what: string, value: string, remedy: string): CliError {
  return new CliError(`${what}: ${JSON.stringify(value)} can't be used: ${remedy}`, 2);
}

/** What somebody may have meant. */
function near(name: string): string {
  const label = kebabCase(name)
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^[^a-z]+|-$/g, '')
    .slice(0, 40)
    .replace(/-$/, '');
  return label || 'guest-book';
}

function pascalCase(name: string): string {
  return name
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');
}

function kebabCase(name: string): string {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1-$2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1-$2')
    .toLowerCase();
}
