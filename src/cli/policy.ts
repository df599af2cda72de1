import type { StructuralSchema } from '../contract/crd.js';
import type { Kind, Policy } from '../contract/kind.js';
import { parseDocuments } from '../validate/document.js';
import type { Document } from '../validate/document.js';
import { formatProblem } from '../validate/problem.js';
import { showValue } from '../values/path.js';
import type { Problem } from '../validate/problem.js';
import { compileSchema } from '../validate/schema.js';
import { CliError } from './output.js';

const EXAMPLE = 'write e.g. "appservice: { maxSize: 10 }"';

/**
 * Makes a policy of a text: YAML with a section for each kind that is restricted, or a ConfigMap that holds such a text
 * under its one key.
 * @param file named in messages
 * @param kinds all that are known, chosen by `--kinds` or not, so that several processes can share a file
 * @throws CliError with exit code 2, with every problem: a policy that isn't understood must not let everything pass
 */
export function parsePolicy(file: string, text: string, kinds: readonly Kind[]): Policy {
  const document = unwrapped(onlyDocument(file, text));
  const problems = problemsOf(document.value, kinds)
    .map((problem) => ({ line: document.lineOf(problem.path), text: formatProblem(problem) }))
    .sort((a, b) => a.line - b.line);
  // A ConfigMap's text counts its own lines.
  if (problems.length > 0)
    throw new CliError(problems.map(({ line, text }) => `${document.file}: line ${line}: ${text}`));
  return document.value as Policy;
}

function onlyDocument(name: string, text: string): Document {
  const problems: string[] = [];
  const [document, second] = parseDocuments({ name, text }, (problem) => problems.push(problem));
  if (document && !second && problems.length === 0) return document;
  if (second)
    problems.push(`${name}: line ${second.lineOf([])}: a second document begins; put all kinds into one`);
  if (problems.length === 0) problems.push(`${name}: holds nothing; ${EXAMPLE}, or {} for no rules`);
  throw new CliError(problems);
}

/** Returns the document that a ConfigMap holds; any other as it is. */
function unwrapped(document: Document): Document {
  const { apiVersion, kind, data } = (document.value ?? {}) as Readonly<Record<string, unknown>>;
  if (apiVersion === undefined && kind === undefined) return document;
  const refused = (why: string): CliError => new CliError(`${document.file}: ${why}`);
  if (apiVersion !== 'v1' || kind !== 'ConfigMap')
    throw refused(
      `holds ${showValue(kind)} of ${showValue(apiVersion)}; give a policy, or a ConfigMap with one`,
    );
  const texts = Object.entries((data ?? {}) as Readonly<Record<string, unknown>>);
  const [[key, text] = ['', undefined], ...others] = texts;
  if (typeof text === 'string' && others.length === 0)
    return onlyDocument(`${document.file}: data[${JSON.stringify(key)}]`, text);
  const keys = texts.map(([each]) => each).join(', ') || 'no key';
  throw refused(`data has ${keys}; give it one key, with the policy as text`);
}

/** Checked as a custom resource is, of whose spec the kinds' sections are the fields. */
function problemsOf(policy: unknown, kinds: readonly Kind[]): Problem[] {
  if (typeof policy !== 'object' || policy === null || Array.isArray(policy)) {
    const message = `${showValue(policy)} is not a mapping from kinds to what is allowed of them`;
    return [{ path: [], message, remedy: EXAMPLE }];
  }
  const without = kinds.filter((kind) => !kind.policySchema && kind.name in policy);
  if (without.length > 0)
    return without.map(({ name }) => ({
      ...{ path: [name], message: 'this kind knows no policy', remedy: 'remove it' },
    }));
  const properties = kinds.flatMap(({ name, policySchema }) =>
    policySchema ? [[name, policySchema] as const] : [],
  );
  const schema: StructuralSchema = {
    type: 'object',
    properties: { spec: { type: 'object', properties: Object.fromEntries(properties) } },
  };
  const problems = compileSchema(schema)({ apiVersion: 'v1', kind: 'Policy', metadata: {}, spec: policy });
  return problems.map((problem) => ({ ...problem, path: problem.path.slice(1) }));
}
