import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DockerfileParser, Entrypoint } from 'dockerfile-ast';
import type { Instruction } from 'dockerfile-ast';
import { repoFolder } from '../../../sandbox/paths.js';

const root = repoFolder();

/** What the Dockerfile says of its last stage. */
export interface ImageConfig {
  readonly entrypoint: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly user: string;
  readonly instructions: readonly Instruction[];
}

export function readDockerfile(): string {
  return readFileSync(join(root, 'Dockerfile'), 'utf8');
}

export function imageConfig(text = readDockerfile()): ImageConfig {
  const dockerfile = DockerfileParser.parse(text);
  const all = dockerfile.getInstructions();
  const last = all.findLastIndex((instruction) => instruction.getKeyword() === 'FROM');
  const instructions = all.slice(last);
  const only = (keyword: string): Instruction => {
    const found = instructions.filter((instruction) => instruction.getKeyword() === keyword);
    if (found.length !== 1) throw new Error(`The last stage has ${found.length} of ${keyword}, not one`);
    return found[0]!;
  };
  const env = instructions.filter((instruction) => instruction.getKeyword() === 'ENV');
  return {
    entrypoint: words(only('ENTRYPOINT')).map((word) => JSON.parse(word.getValue()) as string),
    env: Object.fromEntries(
      env.flatMap((each) => each.getArguments().map((arg) => arg.getValue().split('=') as [string, string])),
    ),
    user: only('USER').getArguments()[0]!.getValue(),
    instructions,
  };
}

/** The words of an instruction, if they are in JSON. */
function words(instruction: Instruction): ReturnType<Entrypoint['getJSONStrings']> {
  return instruction instanceof Entrypoint ? instruction.getJSONStrings() : [];
}
