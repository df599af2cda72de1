import { existsSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isGroup, isKind, isKubernetesGroup, isLabel } from '../../author/definition.js';
import { suggest } from '../../values/suggest.js';
import { CliError } from '../output.js';

/** @throws CliError with exit code 2 where a value can't be used */
export function refuseUnless(isUsable: boolean, option: string, why: string): void {
  if (!isUsable) throw new CliError(`${option}: ${why}`);
}

export const DEFAULT_GROUP = 'example.com';

export interface Names {
  /** Name of its folder, its package and, by default, its image. Unused where a kind is added to a project. */
  readonly project: string;
  readonly group: string;
  /** Name of the kind and of the class of its construct, in PascalCase. */
  readonly kind: string;
  /** Name of the sample, and of the folders of the kind and its tests, in kebab-case. */
  readonly file: string;
}

/** Identifiers in the template's modules, which a kind and its class can't be named after. */
const TAKEN = [
  ...['ApiObject', 'Construct', 'Crd', 'JSON', 'Kind', 'KubernetesManifest', 'Object', 'Partial', 'PodSpec'],
  ...['PodTemplate', 'PropsOf'],
];

/**
 * @param kind defaults to the name of the project in PascalCase
 * @throws CliError with exit code 2 for a name that can't be used
 */
export function readNames(project: string, group = DEFAULT_GROUP, kind = pascalCase(project)): Names {
  const isYaml = /^(y|n|yes|no|on|off|true|false|null)$/i.test(kind);
  const checks: readonly (readonly [isUsable: boolean, option: string, value: string, remedy: string])[] = [
    [
      isLabel(project),
      'NAME',
      project,
      'write at most 63 lower-case letters, digits and "-", as in guest-book',
    ],
    [!isKubernetesGroup(group), '--group', group, 'it is reserved for Kubernetes; give a domain of yours'],
    [isGroup(group), '--group', group, 'a group is a domain in lower case, as in web.example.com'],
    [!isYaml, '--kind', kind, 'YAML reads it as true, false or null; choose another'],
    [
      isKind(kind),
      '--kind',
      kind,
      'write PascalCase, singular, at most 63 letters and digits, as in GuestBook',
    ],
    [!TAKEN.includes(kind), '--kind', kind, 'the project already uses that name; choose another'],
  ];
  for (const [isUsable, option, value, remedy] of checks)
    refuseUnless(isUsable, option, `${JSON.stringify(value)} can't be used: ${remedy}`);
  const file = kind.replace(/([a-z0-9])([A-Z])/g, '$1-$2').replace(/([A-Z])([A-Z][a-z])/g, '$1-$2');
  return { project, group, kind, file: file.toLowerCase() };
}

function pascalCase(name: string): string {
  return name.replace(/(?:^|[^A-Za-z0-9]+)([A-Za-z0-9]?)/g, (_, letter: string) => letter.toUpperCase());
}

/** Kinds of objects that the template of a project can create, in the order in which they are applied. */
export const CHILDREN = [
  ...['ServiceAccount', 'ConfigMap', 'PersistentVolumeClaim', 'Service', 'Deployment', 'StatefulSet'],
  ...['DaemonSet', 'Job', 'CronJob', 'HorizontalPodAutoscaler', 'PodDisruptionBudget', 'Ingress'],
  'NetworkPolicy',
];

export const DEFAULT_CHILDREN: readonly string[] = ['Deployment', 'Service'];

/** Workloads that run for as long as the custom resource exists; a project has at most one. */
export const SERVERS = ['Deployment', 'StatefulSet', 'DaemonSet'];
export const TASKS = ['Job', 'CronJob'];

/** Kinds of which a child needs at least one, since it is about that. */
const NEEDED: Readonly<Record<string, readonly string[]>> = {
  Service: SERVERS,
  Ingress: ['Service'],
  HorizontalPodAutoscaler: ['Deployment', 'StatefulSet'],
  PodDisruptionBudget: ['Deployment', 'StatefulSet'],
  NetworkPolicy: [...SERVERS, ...TASKS],
};

/** Kinds with several pods, which may be on several nodes. A StatefulSet claims a volume for each by itself. */
const NOT_WITH_CLAIM = ['StatefulSet', 'DaemonSet', 'HorizontalPodAutoscaler', 'PodDisruptionBudget'];

/**
 * Reads the value of `--children`.
 *
 * @returns the kinds in the order of `CHILDREN`
 * @throws CliError with exit code 2 for an unknown kind, and for kinds that don't go together
 */
export function readChildren(names: readonly string[]): string[] {
  const wanted = new Set(names.map(childNamed));
  const among = (kinds: readonly string[]): string[] => kinds.filter((kind) => wanted.has(kind));
  const check = (isUsable: boolean, why: string): void => {
    refuseUnless(isUsable, '--children', why);
  };
  const servers = among(SERVERS);
  const both = servers.join(' and ');
  check(servers.length <= 1, `${both} each run spec.image for good; give one, and add the other by hand`);
  for (const child of among(Object.keys(NEEDED))) {
    const targets = NEEDED[child] ?? [];
    check(among(targets).length > 0, `${child} is about another object; add ${targets.join(' or ')}`);
  }
  const others = [...among(NOT_WITH_CLAIM), ...among([...SERVERS, ...TASKS]).slice(1)].join(', ');
  const isMountable = !wanted.has('PersistentVolumeClaim') || others === '';
  check(
    isMountable,
    `a PersistentVolumeClaim is mounted by one pod, on one node; leave it out, or ${others}`,
  );
  return among(CHILDREN);
}

function childNamed(name: string): string {
  const found = CHILDREN.find((child) => child.toLowerCase() === name.toLowerCase());
  if (found !== undefined) return found;
  const meant = suggest(name, CHILDREN);
  throw new CliError(
    `--children: there is no ${name} in the template${meant === undefined ? '' : `; did you mean ${meant}?`}; it has ` +
      `${CHILDREN.join(', ')}. Add other kinds by hand, to the construct and to children in kind.ts; kinds of the whole ` +
      'cluster, Roles and Secrets are better created by an admin, since they take rights that users of the kind lack',
  );
}

/** Source of this package for a project that depends on it. */
interface Source {
  readonly spec: string;
  /** A packed file that becomes part of the project, where `spec` names it. @defaultValue none: it comes from a registry */
  readonly tarball?: { readonly path: string; readonly content: Buffer };
}

export interface Dependency extends Source {
  /** The name under which it is installed and imported. */
  readonly name: string;
}

export const ownFolder = fileURLToPath(new URL('../../../', import.meta.url));

/**
 * Finds the source of the very package that runs.
 *
 * @param given a packed file, a URL, or a version; overrides what npm has recorded
 * @param folder of the package
 * @throws CliError with exit code 2 where the source isn't known, or others could not install it
 */
export function ownDependency(given?: string, folder = ownFolder): Dependency {
  const { name } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
    readonly name: string;
  };
  return { name, ...(given === undefined ? recordedSource(folder) : givenSource(given)) };
}

/** Returns the source that npm recorded when it installed the package. */
function recordedSource(folder: string): Source {
  const parent = dirname(resolve(folder));
  const modules = basename(parent).startsWith('@') ? dirname(parent) : parent;
  const record = join(modules, '.package-lock.json');
  const { packages = {} } = (existsSync(record) ? JSON.parse(readFileSync(record, 'utf8')) : {}) as {
    packages?: Record<string, { version?: string; resolved?: string }>;
  };
  const { version, resolved } = packages[relative(dirname(modules), resolve(folder))] ?? {};
  if (resolved?.startsWith('file:')) return packed(resolve(dirname(modules), resolved.slice('file:'.length)));
  if (resolved?.startsWith('git')) return { spec: resolved };
  if (resolved !== undefined && version !== undefined) return { spec: version };
  throw new CliError(
    `npm hasn't recorded where ${folder} was installed from, so a project can't depend on it: pack it with "npm run package" ` +
      'there, and give the file with --package FILE.tgz',
  );
}

function givenSource(given: string): Source {
  const file = statSync(given.replace(/^file:/, ''), { throwIfNoEntry: false });
  if (file?.isFile()) return packed(resolve(given.replace(/^file:/, '')));
  const isVersion = !file && /^[\w.^~>=<-]+$/.test(given) && !/\.t(ar\.)?gz$/.test(given);
  const why =
    `${given} is no packed file: pack the package with "npm pack" in its folder, and write --package FILE.tgz; ` +
    'or a version, as in --package 0.1.0';
  refuseUnless(isVersion || /^(npm:@|https?:|git[+:@])/.test(given), '--package', why);
  return { spec: given };
}

function packed(file: string): Source {
  const gone = 'the file from which this package was installed is gone; give it with --package FILE';
  refuseUnless(existsSync(file), file, gone);
  const path = `vendor/${basename(file)}`;
  return { spec: `file:${path}`, tarball: { path, content: readFileSync(file) } };
}
