import { basename, resolve } from 'node:path';
import { ownDependency } from './dependency.js';
import { designOf } from './design.js';
import { fill, requireFree } from './folder.js';
import { withFreeNames } from './free-names.js';
import { DEFAULT_GROUP, namesOf } from './names.js';
import { projectFiles } from './project.js';
import { recordSnapshot } from './snapshot.js';
import { snapshotFile } from './tests.js';

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
