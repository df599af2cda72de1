import { relative } from 'node:path';
import ts from 'typescript';
import { repoFolder } from '../../sandbox/paths.js';
import { docstringOf } from './docstring.js';
import type { Docstring } from './docstring.js';
import { membersOf } from './members.js';
import type { Member } from './members.js';
import { mentionsOf } from './mentions.js';
import { declarationOf } from './source-text.js';

/** Something that the package exports. */
export interface Exported {
  readonly name: string;
  /** The file that declares it, below `src/` and without its ending, e.g. `contract/kind`. */
  readonly file: string;
  /** TypeScript, without the body. */
  readonly declaration: string;
  /** Whether it is a type alone: an interface or an alias. */
  readonly isType: boolean;
  readonly isClass: boolean;
  readonly docs: Docstring;
  readonly members: readonly Member[];
  /** The types of ours that it names. */
  readonly mentions: readonly string[];
}

const root = repoFolder();

/** What each of these modules of `src/` exports, in the order of the files' names and of what they declare. */
export function exportsOf<Path extends string>(modules: readonly Path[]): Record<Path, Exported[]> {
  const paths = modules.map((path) => `${root}/src/${path}`);
  const program = ts.createProgram(paths, options());
  const checker = program.getTypeChecker();
  const entries = modules.map((module, index) => {
    const source = program.getSourceFile(paths[index]!);
    const symbol = source && checker.getSymbolAtLocation(source);
    if (!symbol) throw new Error(`src/${module} is not a module`);
    const symbols = checker.getExportsOfModule(symbol).map((alias) => resolved(alias, checker));
    return [module, symbols.sort(byPlace).map((exported) => read(exported, checker))];
  });
  return Object.fromEntries(entries) as Record<Path, Exported[]>;
}

/** As the sources are compiled, but read as one project, so that nothing has to be built. */
function options(): ts.CompilerOptions {
  const base = ts.readConfigFile(`${root}/tsconfig.base.json`, (file) => ts.sys.readFile(file));
  const parsed = ts.parseJsonConfigFileContent(base.config, ts.sys, root);
  const paths = {
    ...{ '#contract/*': [`${root}/src/contract/*`], '#telemetry/*': [`${root}/src/telemetry/*`] },
    '#sandbox/*': [`${root}/sandbox/*`],
  };
  return { ...parsed.options, noEmit: true, paths };
}

function resolved(alias: ts.Symbol, checker: ts.TypeChecker): ts.Symbol {
  return alias.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(alias) : alias;
}

function byPlace(a: ts.Symbol, b: ts.Symbol): number {
  const [one, other] = [placeOf(a), placeOf(b)];
  if (one.file !== other.file) return one.file < other.file ? -1 : 1;
  return one.position - other.position;
}

function placeOf(symbol: ts.Symbol): { readonly file: string; readonly position: number } {
  const [declaration] = symbol.declarations ?? [];
  if (!declaration) throw new Error(`${symbol.name} is declared nowhere`);
  const { fileName } = declaration.getSourceFile();
  return { file: relative(`${root}/src`, fileName).replace(/\.ts$/, ''), position: declaration.pos };
}

function read(symbol: ts.Symbol, checker: ts.TypeChecker): Exported {
  return {
    name: symbol.name,
    file: placeOf(symbol).file,
    declaration: declarationOf(symbol, checker),
    isType: (symbol.flags & ts.SymbolFlags.Value) === 0,
    isClass: (symbol.flags & ts.SymbolFlags.Class) !== 0,
    docs: docstringOf(symbol, checker),
    members: membersOf(symbol, checker),
    mentions: mentionsOf(symbol, checker),
  };
}
