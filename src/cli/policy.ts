import { readFile } from 'node:fs/promises';
import type { StructuralSchema } from '../contract/crd.js';
import { messageOf } from '../contract/error.js';
import type { Kind, Policy } from '../contract/kind.js';
import { parseDocuments } from '../synth/document.js';
import type { Document } from '../synth/document.js';
import { formatProblem, showValue } from '../synth/problem.js';
import type { Problem } from '../synth/problem.js';
import { compileSchema } from '../synth/schema.js';
import { CliError } from './exit.js';

const EXAMPLE = 'write e.g. "appservice: { maxSize: 10 }"';

/**
 * Reads what the admin allows.
 * @param kinds all that are known, chosen by `--kinds` or not, so that several processes can share a file
 * @throws CliError with exit code 2, with every problem: a policy that isn't understood must not let everything pass
 */
export async function loadPolicy(file: string, kinds: readonly Kind[]): Promise<Policy> {
  return parsePolicy(file, await readPolicy(file), kinds);
}

/** @throws CliError with exit code 2 */
export async function readPolicy(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    const why = missing ? 'there is no such file' : `can't be read: ${messageOf(error)}`;
    throw refusal([`${file}: ${why}; check the path given to --policy`]);
  }
}

/**
 * Makes a policy of a text: YAML with a section for each kind that is restricted, or a ConfigMap that holds such a text
 * under its one key.
 * @param file named in messages
 * @throws CliError as `loadPolicy`
 */
export function parsePolicy(file: string, text: string, kinds: readonly Kind[]): Policy {
  const document = unwrapped(onlyDocument(file, text));
  const problems = problemsOf(document.value, kinds)
    .map((problem) => ({ line: document.lineOf(problem.path), text: formatProblem(problem) }))
    .sort((a, b) => a.line - b.line);
  if (problems.length > 0) {
    // A ConfigMap's text counts its own lines.
    throw refusal(problems.map(({ line, text }) => `${document.file}: line ${line}: ${text}`));
  }
  return document.value as Policy;
}

function onlyDocument(name: string, text: string): Document {
  const problems: string[] = [];
  const documents = parseDocuments({ name, text }, (problem) => problems.push(problem));
  if (problems.length > 0) throw refusal(problems);
  const [document, second] = documents;
  if (!document) throw refusal([`${name}: holds nothing; ${EXAMPLE}, or {} for no rules`]);
  if (second) {
    throw refusal([`${name}: line ${second.lineOf([])}: a second document begins; put all kinds into one`]);
  }
  return document;
}

/** What a ConfigMap holds; anything else as it is. */
function unwrapped(document: Document): Document {
  const { apiVersion, kind, data } = (document.value ?? {}) as Readonly<Record<string, unknown>>;
  if (apiVersion === undefined && kind === undefined) return document;
  if (apiVersion !== 'v1' || kind !== 'ConfigMap') {
    throw refusal([
      `${document.file}: holds ${showValue(kind)} of ${showValue(apiVersion)}; give a policy, or a ConfigMap with one`,
    ]);
  }
  const texts = Object.entries((data ?? {}) as Readonly<Record<string, unknown>>);
  const [only] = texts;
  if (!only || texts.length > 1 || typeof only[1] !== 'string') {
    throw refusal([
      `${document.file}: data has ${texts.map(([key]) => key).join(', ') || 'no key'}; give it one key, with the policy as text`,
    ]);
  }
  return onlyDocument(`${document.file}: data[${JSON.stringify(only[0])}]`, only[1]);
}

/** Checked as a custom resource is, of whose spec the kinds' sections are the fields. */
function problemsOf(policy: unknown, kinds: readonly Kind[]): Problem[] {
  if (typeof policy !== 'object' || policy === null || Array.isArray(policy)) {
    const message = `${showValue(policy)} is not a mapping from kinds to what is allowed of them`;
    return [{ path: [], message, remedy: EXAMPLE }];
  }
  const without = kinds.filter((kind) => !kind.policySchema && kind.name in policy);
  if (without.length > 0) {
    return without.map(({ name }) => ({
      path: [name],
      message: 'this kind knows no policy',
      remedy: 'remove it',
    }));
  }
  const schema: StructuralSchema = {
    type: 'object',
    properties: { spec: { type: 'object', properties: sections(kinds) } },
  };
  const problems = compileSchema(schema)({ apiVersion: 'v1', kind: 'Policy', metadata: {}, spec: policy });
  return problems.map((problem) => ({ ...problem, path: problem.path.slice(1) }));
}

function sections(kinds: readonly Kind[]): Record<string, StructuralSchema> {
  return Object.fromEntries(
    kinds.flatMap(({ name, policySchema }) => (policySchema ? [[name, policySchema] as const] : [])),
  );
}

function refusal(lines: readonly string[]): CliError {
  return new CliError(lines, 2);
}
