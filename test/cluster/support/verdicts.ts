import type { CustomResourceDefinition } from '../../../src/contract/crd.js';
import { applyDefaults } from '../../../src/synth/defaults.js';
import { checkNames } from '../../../src/synth/names.js';
import { formatPath, formatProblem } from '../../../src/synth/problem.js';
import type { Problem } from '../../../src/synth/problem.js';
import { compileSchema } from '../../../src/synth/schema.js';
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
  const validate = compileSchema(schema, { hasStatus: version!.subresources?.status !== undefined });
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
  if ((answer.status === 201) !== (problems.length === 0)) return [line('VERDICT')];
  if (answer.status === 201) return [];
  const online = new Set(onlinePaths(answer));
  const isStrict = told.includes('strict decoding error');
  const unknown = problems.filter(({ message }) => message === 'unknown field');
  const own = new Set((isStrict ? unknown : problems).map(({ path }) => normal(formatPath(path))));
  const missing = [...online].filter((path) => !own.has(path));
  const extra = [...own].filter((path) => !online.has(path));
  return missing.length + extra.length === 0
    ? []
    : [line(`PATHS, missing here: ${missing.join(', ')}; only here: ${extra.join(', ')}`)];
}

function onlinePaths({ body }: Answer): string[] {
  const told = (body as Status).message ?? '';
  if (told.includes('strict decoding error')) {
    return [...told.matchAll(/unknown field "([^"]*)"/g)].map(([, path = '']) => normal(path));
  }
  const { causes = [] } = (body as Status).details ?? {};
  return causes.flatMap(({ field = '', message = '' }) => {
    if (message.includes('some validation rules were not checked')) return [];
    // Of alternatives, the path is in the message.
    const [, inMessage] = /"([^"]+)" must (?:validate|not validate)/.exec(message) ?? [];
    return [normal(field === '<nil>' ? (inMessage ?? '') : field)];
  });
}

/** `spec.a[0]["b.c"]` and `spec.a[0].b.c` are told by different parts of the API server. */
function normal(path: string): string {
  return path
    .split(/[.[\]"]+/)
    .filter((step) => step !== '')
    .join('.');
}
