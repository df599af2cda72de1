import type { AdminFile, Kind, Sections } from '../contract/kind.js';
import { parseDocuments } from '../validate/document.js';
import type { Document } from '../validate/document.js';
import { formatProblem } from '../validate/problem.js';
import { showValue } from '../values/path.js';
import type { Problem } from '../validate/problem.js';
import { problemsInSections } from '../validate/schema.js';
import { isMap } from '../values/json.js';
import { CliError, WORDS } from './output.js';

/**
 * Reads a file of the admin: YAML with a section for each kind, or a ConfigMap that holds such a text under its one key.
 * @param place named in messages
 * @param kinds all that are known, chosen by `--kinds` or not, so that several processes can share a file
 * @returns the sections as they are given, without the defaults of their schemas
 * @throws CliError with exit code 2, with every problem: a policy that isn't understood must not let everything pass
 */
export function sectionsIn(name: AdminFile, place: string, text: string, kinds: readonly Kind[]): Sections {
  const document = unwrapped(name, onlyDocument(name, place, text));
  const problems = problemsOf(name, document.value, kinds)
    .map((problem) => ({ line: document.lineOf(problem.path), text: formatProblem(problem) }))
    .sort((a, b) => a.line - b.line);
  // A ConfigMap's text counts its own lines.
  if (problems.length > 0)
    throw new CliError(problems.map(({ line, text }) => `${document.file}: line ${line}: ${text}`));
  return document.value as Sections;
}

function onlyDocument(name: AdminFile, place: string, text: string): Document {
  const problems: string[] = [];
  const [document, second] = parseDocuments({ name: place, text }, (problem) => problems.push(problem));
  if (document && !second && problems.length === 0) return document;
  if (second)
    problems.push(`${place}: line ${second.lineOf([])}: a second document begins; put all kinds into one`);
  const { example, empty } = WORDS[name];
  if (problems.length === 0) problems.push(`${place}: holds nothing; ${example}, or {} for ${empty}`);
  throw new CliError(problems);
}

/** Returns the document that a ConfigMap holds; any other as it is. */
function unwrapped(name: AdminFile, document: Document): Document {
  const { whole, another } = WORDS[name];
  const { apiVersion, kind, data } = (document.value ?? {}) as Readonly<Record<string, unknown>>;
  if (apiVersion === undefined && kind === undefined) return document;
  const refused = (why: string): CliError => new CliError(`${document.file}: ${why}`);
  if (apiVersion !== 'v1' || kind !== 'ConfigMap')
    throw refused(
      `holds ${showValue(kind)} of ${showValue(apiVersion)}; give ${whole}, or a ConfigMap with ${another}`,
    );
  const texts = Object.entries((data ?? {}) as Readonly<Record<string, unknown>>);
  const [[key, text] = ['', undefined], ...others] = texts;
  if (typeof text === 'string' && others.length === 0)
    return onlyDocument(name, `${document.file}: data[${JSON.stringify(key)}]`, text);
  const keys = texts.map(([each]) => each).join(', ') || 'no key';
  throw refused(`data has ${keys}; give it one key, with the ${name} as text`);
}

function problemsOf(name: AdminFile, sections: unknown, kinds: readonly Kind[]): Problem[] {
  if (!isMap(sections)) {
    const { example, members } = WORDS[name];
    const message = `${showValue(sections)} is not a mapping from kinds to ${members}`;
    return [{ path: [], message, remedy: example }];
  }
  const schemaName = `${name}Schema` as const;
  const without = kinds.filter((kind) => !kind[schemaName] && kind.name in sections);
  if (without.length > 0)
    return without.map((kind) => ({
      ...{ path: [kind.name], message: `this kind knows no ${name}`, remedy: 'remove it' },
    }));
  const properties = Object.fromEntries(
    kinds.flatMap((kind) => (kind[schemaName] ? [[kind.name, kind[schemaName]]] : [])),
  );
  return problemsInSections(sections, properties);
}
