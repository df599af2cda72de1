import { isGroup, isKind, isKubernetesGroup, isLabel } from '../../contract/names.js';
import { CliError } from '../exit.js';

export const DEFAULT_GROUP = 'example.com';

/** Names that stand in a project. */
export interface Names {
  /** Of its folder, its package and, by default, its image. */
  readonly project: string;
  readonly group: string;
  /** In PascalCase: the kind, and the class of its construct. */
  readonly kind: string;
  /** In kebab-case: of the files of the construct, the sample and the snapshot. */
  readonly file: string;
}

/** Identifiers in the modules of the construct and the kind that a class can't be named after, and what files are. */
const TAKEN = ['ApiObject', 'Construct', 'Crd', 'JSON', 'Kind', 'Object', 'PropsOf'];

/**
 * @param kind defaults to the name of the project in PascalCase
 * @throws CliError with exit code 2 for a name that can't be used
 */
export function readNames(project: string, group = DEFAULT_GROUP, kind = pascalCase(project)): Names {
  if (!isLabel(project))
    throw refused(
      'NAME',
      project,
      'a project is named in at most 63 lower-case letters, digits and "-", with a letter first, as in guest-book',
    );
  if (isKubernetesGroup(group))
    throw refused('--group', group, 'it is reserved for Kubernetes; give a domain of yours');
  if (!isGroup(group))
    throw refused(
      '--group',
      group,
      'a group is a domain in lower case, at best one of yours, as in web.example.com',
    );
  if (/^(y|n|yes|no|on|off|true|false|null)$/i.test(kind))
    throw refused('--kind', kind, 'YAML reads it as true, false or null; choose another');
  if (!isKind(kind))
    throw refused(
      '--kind',
      kind,
      'a kind is written in PascalCase, in the singular, with at most 63 letters and digits, as in GuestBook',
    );
  if (TAKEN.includes(kind))
    throw refused('--kind', kind, 'the project already uses that name; choose another');
  return { project, group, kind, file: kebabCase(kind) };
}

function refused(what: string, value: string, remedy: string): CliError {
  return new CliError(`${what}: ${JSON.stringify(value)} can't be used: ${remedy}`, 2);
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
