import { constructModule, kindModule } from './code.js';
import type { Plan } from './code.js';
import { refused } from './names.js';
import { operatorTest, snapshotTest, sweepProgram } from './tests.js';

/** Stands for the names that are looked for. */
const BLANK = '_';

/**
 * The plan with a constant whose name the modules and the language leave free.
 *
 * @throws CliError with exit code 2 where the class of the construct would have a name that its modules need
 */
export function withFreeNames(plan: Plan): Plan {
  const { kind, file, variable } = plan.names;
  const blank = { ...plan, names: { ...plan.names, kind: BLANK, variable: BLANK } };
  const construct = kindModule(blank);
  if (isModule(file) || kind === 'Object' || namesIn(constructModule(blank), construct).has(kind))
    throw refused('--kind', kind, 'the project has something of that name already; choose another');
  const taken = namesIn(construct, snapshotTest(blank), operatorTest(blank), sweepProgram(blank));
  const isTaken = RESERVED.has(variable) || taken.has(variable);
  return isTaken ? { ...plan, names: { ...plan.names, variable: `${variable}Kind` } } : plan;
}

function isModule(file: string): boolean {
  return ['crd', 'kind'].includes(file);
}

/** Whatever may be the name of a variable, a function or a type there: no member of an object, no text, no comment. */
function namesIn(...modules: readonly string[]): Set<string> {
  const text = modules.join('\n').replaceAll(COMMENT_OR_TEXT, "''");
  return new Set(text.match(NAME));
}

const COMMENT_OR_TEXT = /\/\*[^]*?\*\/|\/\/.*|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"/g;
const NAME = /(?<!\w|[^.]\.)[A-Za-z]\w*\b(?!:)/g;

/** What the language keeps to itself. */
const RESERVED = new Set([
  ...['break', 'case', 'catch', 'class', 'const', 'continue', 'debugger', 'default', 'delete', 'do', 'else'],
  ...['enum', 'export', 'extends', 'false', 'finally', 'for', 'function', 'if', 'import', 'in', 'instanceof'],
  ...['new', 'null', 'return', 'super', 'switch', 'this', 'throw', 'true', 'try', 'typeof', 'var', 'void'],
  ...['while', 'with', 'await', 'implements', 'interface', 'let', 'package', 'private', 'protected'],
  ...['public', 'static', 'yield', 'arguments', 'eval', 'undefined'],
]);
