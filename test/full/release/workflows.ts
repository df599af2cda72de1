import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { repoFolder } from '../../../sandbox/paths.js';

interface Step {
  readonly id?: string;
  readonly uses?: string;
  readonly run?: string;
}

interface Job {
  readonly needs?: string | readonly string[];
  readonly uses?: string;
  readonly steps?: readonly Step[];
  readonly outputs?: object;
  readonly permissions?: Readonly<Record<string, string>>;
}

interface Workflow {
  readonly on?: unknown;
  readonly permissions?: Readonly<Record<string, string>>;
  readonly jobs: Readonly<Record<string, Job>>;
}

const root = repoFolder();

/** What is wrong with a workflow, in sentences, as far as it can be told without running it. */
export function faultsOf(text: string): string[] {
  const workflow = parse(text, { strict: true, uniqueKeys: true }) as Workflow;
  const { on, permissions, jobs } = workflow;
  return [
    ...(on === undefined ? ['It is never run'] : []),
    ...(JSON.stringify(permissions) === '{"contents":"read"}' ? [] : ['Whatever is not said may write']),
    ...[...text.matchAll(/uses: (.*)/g)].flatMap(([, line]) => faultOfAction(line!)),
    ...Object.entries(jobs).flatMap(([name, job]) =>
      faultsOfJob(job, jobs).map((fault) => `${name}: ${fault}`),
    ),
  ];
}

/** Another repository's code is pinned by its commit, since tags move, and told by its version. */
function faultOfAction(line: string): string[] {
  if (line.startsWith('./')) return existsSync(join(root, line)) ? [] : [`${line} isn't there`];
  return /^[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(line)
    ? []
    : [`${line} isn't pinned by a commit`];
}

function faultsOfJob(job: Job, jobs: Workflow['jobs']): string[] {
  const needs = [job.needs ?? []].flat();
  const ids = (job.steps ?? []).flatMap(({ id }) => id ?? []);
  const text = JSON.stringify(job);
  const outputsOf = (name: string): object => jobs[name]?.outputs ?? {};
  return [
    ...needs.filter((need) => !Object.hasOwn(jobs, need)).map((need) => `needs ${need}, which isn't there`),
    ...[...text.matchAll(/needs\.(\w+)\.outputs\.(\w+)/g)]
      .filter(([, name, output]) => !needs.includes(name!) || !Object.hasOwn(outputsOf(name!), output!))
      .map(([reference]) => `${reference} isn't there`),
    ...[...text.matchAll(/steps\.(\w+)\.outputs/g)]
      .filter(([, id]) => !ids.includes(id!))
      .map(([reference]) => `${reference} isn't there`),
    ...(job.steps ?? []).flatMap(({ run = '' }) => faultsOfScript(run)),
  ];
}

function faultsOfScript(run: string): string[] {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: object };
  return [
    // What is put into a script is run: it has to come by the environment.
    ...(run.includes('${{') ? [`${run} has an expression in it`] : []),
    ...[...run.matchAll(/npm run (?:--\S+ )?([\w:]+)/g)]
      .filter(([, script]) => !Object.hasOwn(scripts, script!))
      .map(([, script]) => `there is no script ${script!}`),
    ...[...run.matchAll(/node ((?:scripts|test)\/\S+)/g)]
      .filter(([, file]) => !existsSync(join(root, file!)))
      .map(([, file]) => `there is no ${file!}`),
    ...[...run.matchAll(/^\.\S+/gm)]
      .filter(([file]) => !isProgram(join(root, file)))
      .map(([file]) => `there is no ${file}`),
  ];
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
