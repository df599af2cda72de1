import type { CustomResourceDefinition } from '../../src/contract/crd.js';
import { applyDefaults } from '../../src/validate/defaults.js';
import { checkNames } from '../../src/validate/formats.js';
import { formatPath } from '../../src/values/path.js';
import { formatProblem } from '../../src/validate/problem.js';
import type { Problem } from '../../src/validate/problem.js';
import { compileSchema, optionsFor } from '../../src/validate/schema.js';
import type { Answer } from './cluster.js';

/** A custom resource with both verdicts. */
export interface Judged {
  readonly name: string;
  readonly object: object;
  readonly answer: Answer;
  readonly problems: readonly Problem[];
}

/** The verdict without any cluster, as synth has it. */
export function offline(crd: CustomResourceDefinition): (object: object) => Problem[] {
  const [version] = crd.spec.versions;
  const schema = version!.schema.openAPIV3Schema;
  const validate = compileSchema(schema, optionsFor(version!));
  return (object) => {
    const candidate = applyDefaults(object, schema) as { metadata?: object };
    return [...validate(candidate), ...checkNames(candidate.metadata ?? {})];
  };
}

interface Cause {
  readonly field?: string;
  readonly message?: string;
}

interface Status {
  readonly message?: string;
  readonly details?: { readonly causes?: readonly Cause[] };
}

/** One line for each thing that the two verdicts don't agree on. */
export function differences({ name, object, answer, problems }: Judged): string[] {
  const told = (answer.body as Status).message ?? '';
  const line = (what: string): string =>
    `${name}: ${what}\n  online ${answer.status}: ${told.slice(0, 600)}\n  offline: ${problems.map(formatProblem).join(' | ').slice(0, 600)}\n  ${JSON.stringify(object).slice(0, 300)}`;
  const isAccepted = answer.status < 300;
  if (isAccepted !== (problems.length === 0)) return [line('VERDICT')];
  if (isAccepted) return [];
  const { paths: online, alternatives } = onlinePaths(answer);
  const isStrict = told.includes('strict decoding error');
  const unknown = problems.filter(({ message }) => message === 'unknown field');
  const own = new Set((isStrict ? unknown : problems).map(({ path }) => normal(formatPath(path))));
  // What each alternative lacks is told too, below it; here the alternatives are one thing.
  const isDetail = (path: string): boolean => alternatives.some((outer) => path.startsWith(`${outer}.`));
  const missing = [...online].filter((path) => !own.has(path) && !isDetail(path));
  const extra = [...own].filter((path) => !online.has(path));
  return missing.length + extra.length === 0
    ? []
    : [line(`PATHS, missing here: ${missing.join(', ')}; only here: ${extra.join(', ')}`)];
}

interface OnlinePaths {
  readonly paths: ReadonlySet<string>;
  readonly alternatives: readonly string[];
}

function onlinePaths({ body }: Answer): OnlinePaths {
  const told = (body as Status).message ?? '';
  if (told.includes('strict decoding error')) {
    const unknown = [...told.matchAll(/unknown field "([^"]*)"/g)].map(([, path = '']) => normal(path));
    return { paths: new Set(unknown), alternatives: [] };
  }
  const paths = new Set<string>();
  const alternatives: string[] = [];
  for (const { field = '', message = '' } of (body as Status).details?.causes ?? []) {
    if (message.includes('some validation rules were not checked')) continue;
    // What `scale` can't read is of a wrong type, which is told where it is.
    if (message.includes('accessor error')) continue;
    // What of it all isn't fulfilled is told too.
    if (message.includes('must validate all the schemas (allOf)')) continue;
    const [, alternative] = /"([^"]+)" must (?:not )?validate/.exec(message) ?? [];
    const [, number] = /value must be of .* in ([^" ]+)$/.exec(message) ?? [];
    if (alternative !== undefined) alternatives.push(normal(alternative));
    // Of alternatives and numbers, the path is in the message only.
    paths.add(normal(field === '<nil>' ? (alternative ?? number ?? '') : field));
  }
  return { paths, alternatives };
}

/** `spec.a[0]["b.c"]` and `spec.a[0].b.c` are told by different parts of the API server, and a key of the labels not at all. */
function normal(path: string): string {
  return path
    .split(/[.[\]"]+/)
    .filter((step) => step !== '')
    .join('.')
    .replace(/^(metadata\.(?:labels|annotations))\..*/, '$1');
}
