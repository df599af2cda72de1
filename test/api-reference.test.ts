import { join, relative } from 'node:path';
import { format, resolveConfig } from 'prettier';
import ts from 'typescript';
import { expect, test } from 'vitest';
import { repoFolder } from '../sandbox/paths.js';

/** Something that the package exports. */
interface Exported {
  readonly name: string;
  /** The file that declares it, relative to `src/`. */
  readonly file: string;
  /** The first sentence of its docstring; empty where there is none. */
  readonly summary: string;
  /** The types of this project that its declaration names. */
  readonly mentions: readonly string[];
}

const root = repoFolder();
const ENTRIES = {
  'cdk8s-reconstruct': 'index.ts',
  'cdk8s-reconstruct/kinds': 'kinds/index.ts',
  'cdk8s-reconstruct/testing': 'testing/index.ts',
} as const;

/** Sections of the page, by where the files that declare their exports begin. */
const SECTIONS: readonly (readonly [title: string, ...files: string[]])[] = [
  ['Defining a kind', 'author/define-kind', 'author/listed-types', 'author/define-crd', 'author/typed-crd'],
  [
    'Readiness, status and errors',
    'author/status',
    'values/readiness',
    'contract/conditions',
    'contract/error',
  ],
  ['Handing fields over', 'author/hand-over'],
  ['Rendering manifests', 'render/'],
  [
    'Objects, types and names',
    'contract/crd',
    'author/kubernetes-types',
    'values/label-selector',
    'contract/resource',
    'contract/object',
    'contract/names',
    'values/projections',
    'author/load-crd',
  ],
  ['The core contract', 'contract/', 'author/'],
  ['Rights', 'install/'],
  ['Built-in kinds', 'kinds/'],
  ['Sweeping a kind', 'testing/conformance', 'testing/report', 'testing/tested-kind'],
  ['Tests on a control plane of their own', 'testing/', 'client/', '../sandbox/'],
];

const PAGE = 'docs/reference/api.md';
const INTRO = `<!-- Generated from the docstrings in src/ by "npm run reference"; edit those instead. -->

# API

Everything that the package exports, with the first sentence of its documentation. The whole documentation (members, defaults,
errors, examples) is in the types, where an editor shows it. [A kind of your own](../your-own-kind.md) and
[Testing a kind](../testing.md) introduce it step by step.
`;

/** Types that the API mentions and exports under another name, or that add nothing to what they are given. */
const ALIASES: readonly string[] = ['AppServiceSpec', 'FromStatus', 'Installed'];

const api = readEntries();
const all = Object.values(api).flat();

/** `npm run reference` updates the page. */
test('docs/reference/api.md lists what the package exports', async () => {
  const options = { ...(await resolveConfig(join(root, PAGE))), parser: 'markdown' };

  await expect(await format(page(), options)).toMatchFileSnapshot(join(root, PAGE));
});

test('every export is documented', () => {
  expect(all.filter(({ summary }) => summary === '').map(({ name, file }) => `${file}: ${name}`)).toEqual([]);
});

test('every type of this project that the API mentions is exported', () => {
  const exported = new Set([...all.map(({ name }) => name), ...ALIASES]);

  const missing = all.flatMap(({ name, mentions }) =>
    mentions.filter((type) => !exported.has(type)).map((type) => `${name} mentions ${type}`),
  );
  expect(missing).toEqual([]);
});

function page(): string {
  const parts = Object.entries(api).map(([entry, exports]) => {
    const sections = SECTIONS.map(([title, ...files]) => {
      const sectionOf = ({ file }: Exported): string | undefined =>
        SECTIONS.find(([, ...prefixes]) => prefixes.some((prefix) => file.startsWith(prefix)))?.[0];
      const lost = exports.find((one) => sectionOf(one) === undefined);
      if (lost) throw new Error(`${lost.name} of ${lost.file} is in no section`);
      const rows = exports.filter((one) => sectionOf(one) === title && files.length > 0);
      const lines = rows.map(({ name, summary }) => `- \`${name}\`: ${summary}`);
      return lines.length === 0 ? '' : `### ${title}\n\n${lines.join('\n')}\n`;
    });
    return `## \`${entry}\`\n\n${sections.filter((section) => section !== '').join('\n')}`;
  });
  return [INTRO, ...parts].join('\n');
}

function readEntries(): Record<string, Exported[]> {
  const paths = Object.values(ENTRIES).map((entry) => `${root}/src/${entry}`);
  const base = ts.readConfigFile(`${root}/tsconfig.base.json`, (file) => ts.sys.readFile(file));
  const { options } = ts.parseJsonConfigFileContent(base.config, ts.sys, root);
  const aliases = {
    '#contract/*': ['src/contract/*'],
    '#telemetry/*': ['src/telemetry/*'],
    '#values/*': ['src/values/*'],
    '#sandbox/*': ['sandbox/*'],
  };
  const sources = Object.entries(aliases).map(([name, [path]]) => [name, [`${root}/${path}`]] as const);
  const program = ts.createProgram(paths, {
    ...options,
    noEmit: true,
    paths: Object.fromEntries(sources) as never,
  });
  const checker = program.getTypeChecker();
  const entries = Object.keys(ENTRIES).map((entry, index) => {
    const module = checker.getSymbolAtLocation(program.getSourceFile(paths[index]!)!)!;
    const symbols = checker.getExportsOfModule(module).map((symbol) => resolved(symbol, checker));
    const exports = symbols.map((symbol) => read(symbol, checker));
    return [
      entry,
      exports.sort((one, other) => (one.file < other.file ? -1 : one.file > other.file ? 1 : 0)),
    ] as const;
  });
  return Object.fromEntries(entries);
}

function resolved(symbol: ts.Symbol, checker: ts.TypeChecker): ts.Symbol {
  return symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
}

function read(symbol: ts.Symbol, checker: ts.TypeChecker): Exported {
  const text = ts.displayPartsToString(symbol.getDocumentationComment(checker));
  const [paragraph = ''] = text.trim().split('\n\n');
  const line = paragraph.replaceAll(/\s+/g, ' ').replaceAll(/\{@link (\S+?)\}/g, '`$1`');
  const [sentence = line] = /^.*?(?<!\b(?:e\.g|i\.e))\.(?=\s|$)/.exec(line) ?? [];
  const file = relative(`${root}/src`, symbol.declarations![0]!.getSourceFile().fileName);
  return {
    name: symbol.name,
    file,
    summary: sentence.replace(/:$/, '.'),
    mentions: mentionsOf(symbol, checker),
  };
}

/** Leaves out values, private members, and computed types, which nobody has to name. */
function mentionsOf(symbol: ts.Symbol, checker: ts.TypeChecker): string[] {
  const found = new Set<string>();
  const note = (name: ts.Node): void => {
    const named = checker.getSymbolAtLocation(name);
    const type = named && resolved(named, checker);
    if (type?.declarations?.some(isOurs)) found.add(type.name);
  };
  const visit = (node: ts.Node): void => {
    if (isHidden(node)) return;
    if (ts.isTypeReferenceNode(node)) note(node.typeName);
    if (ts.isExpressionWithTypeArguments(node)) note(node.expression);
    node.forEachChild(visit);
  };
  for (const declaration of symbol.declarations ?? []) visit(declaration);
  return [...found];
}

function isHidden(node: ts.Node): boolean {
  const isValue = ts.isBlock(node) || ts.isObjectLiteralExpression(node) || ts.isCallExpression(node);
  if (isValue || ts.isArrowFunction(node)) return true;
  if (ts.isConditionalTypeNode(node) || ts.isMappedTypeNode(node)) return true;
  if (ts.getJSDocTags(node).some(({ tagName }) => tagName.text === 'internal')) return true;
  const hidden = ts.ModifierFlags.Private | ts.ModifierFlags.Protected;
  return (
    ts.isClassElement(node) &&
    ((ts.getCombinedModifierFlags(node) & hidden) !== 0 ||
      (node.name !== undefined && ts.isPrivateIdentifier(node.name)))
  );
}

function isOurs(declaration: ts.Declaration): boolean {
  const { fileName } = declaration.getSourceFile();
  const isNamed = !ts.isTypeParameterDeclaration(declaration);
  return isNamed && fileName.startsWith(`${root}/`) && !fileName.includes('/node_modules/');
}
