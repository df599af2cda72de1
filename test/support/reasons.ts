import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { repoFolder } from '../../sandbox/paths.js';

/**
 * Returns the reasons that sources give as text, each with the files that do: values, defaults, arguments and members of tuples that are
 * named `reason`, and what these are led back to.
 * @param folders below `src`
 */
export function reasonsGiven(folders: readonly string[]): ReadonlyMap<string, ReadonlySet<string>> {
  const root = join(repoFolder(), 'src');
  const paths = folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((path) => join(folder, path)),
  );
  const sources = paths
    .filter((path) => path.endsWith('.ts'))
    .map((path) =>
      ts.createSourceFile(path, readFileSync(join(root, path), 'utf8'), ts.ScriptTarget.Latest, true),
    );
  return new Search(sources).found;
}

const REASON = /^[A-Z][A-Za-z]+$/;

class Search {
  readonly found = new Map<string, Set<string>>();
  /** Calls by the name of the function. */
  private readonly calls: ReadonlyMap<string, readonly ts.CallExpression[]>;
  private readonly variables: readonly ts.VariableDeclaration[];
  /** Parameters that become reasons. */
  private readonly asked = new Set<ts.ParameterDeclaration>();
  private readonly followed = new Set<ts.Identifier>();

  constructor(sources: readonly ts.SourceFile[]) {
    const nodes: ts.Node[] = [];
    const collect = (node: ts.Node): void => {
      nodes.push(node);
      ts.forEachChild(node, collect);
    };
    sources.forEach(collect);
    this.calls = Map.groupBy(nodes.filter(ts.isCallExpression), nameOfCalled);
    this.variables = nodes.filter(ts.isVariableDeclaration);
    for (const node of nodes) this.look(node);
    // The set grows meanwhile.
    for (const parameter of this.asked) this.takeArguments(parameter);
  }

  private look(node: ts.Node): void {
    if (ts.isPropertyAssignment(node) && isNamed(node.name)) this.take(node.initializer);
    else if (ts.isShorthandPropertyAssignment(node) && isNamed(node.name)) this.follow(node.name);
    else if (ts.isBindingElement(node) && isNamed(node.propertyName ?? node.name))
      this.take(node.initializer);
    else if (ts.isParameter(node) && isNamed(node.name)) this.asked.add(node);
    else if (ts.isReturnStatement(node)) this.lookAtReturn(node);
  }

  private lookAtReturn({ expression, parent }: ts.ReturnStatement): void {
    if (!expression || !ts.isArrayLiteralExpression(expression)) return;
    const type = ts.findAncestor(parent, ts.isFunctionLike)?.type;
    const tuple = type && ts.isTypeOperatorNode(type) ? type.type : type;
    if (!tuple || !ts.isTupleTypeNode(tuple)) return;
    const index = tuple.elements.findIndex((each) => ts.isNamedTupleMember(each) && isNamed(each.name));
    this.take(expression.elements[index]);
  }

  private takeArguments(parameter: ts.ParameterDeclaration): void {
    this.take(parameter.initializer);
    const { parent } = parameter;
    const { name } = (ts.isArrowFunction(parent) ? parent.parent : parent) as { readonly name?: ts.Node };
    if (!name || !ts.isIdentifier(name)) return;
    const index = parent.parameters.findIndex((each) => each === parameter);
    for (const { arguments: given } of this.calls.get(name.text) ?? []) this.take(given[index]);
  }

  private take(value: ts.Expression | undefined): void {
    if (!value) return;
    if (ts.isStringLiteral(value) && REASON.test(value.text)) {
      const files = this.found.get(value.text) ?? new Set();
      this.found.set(value.text, files.add(value.getSourceFile().fileName));
    } else if (ts.isConditionalExpression(value)) {
      this.take(value.whenTrue);
      this.take(value.whenFalse);
    } else if (ts.isBinaryExpression(value)) {
      this.take(value.left);
      this.take(value.right);
    } else if (ts.isIdentifier(value)) this.follow(value);
  }

  /** Takes what a parameter is given, or what a variable is initialized with, here or in the file that it is imported from. */
  private follow(name: ts.Identifier): void {
    if (this.followed.has(name)) return;
    this.followed.add(name);
    const isIts = (node: ts.NamedDeclaration): boolean =>
      node.name !== undefined && isNamed(node.name, name.text);
    const holder = ts.findAncestor(name, (node) => ts.isFunctionLike(node) && node.parameters.some(isIts));
    const parameter = (holder as ts.SignatureDeclaration | undefined)?.parameters.find(isIts);
    if (parameter) this.asked.add(parameter);
    else
      for (const variable of this.variables)
        if (isIts(variable) && isInScope(variable, name)) this.take(variable.initializer);
  }
}

function isNamed(name: ts.Node, wanted = 'reason'): boolean {
  return ts.isIdentifier(name) && name.text === wanted;
}

/** Reports whether a variable is declared around a name, or exported to its file. */
function isInScope(variable: ts.VariableDeclaration, name: ts.Identifier): boolean {
  const scope = ts.findAncestor(variable, (node) => ts.isBlock(node) || ts.isSourceFile(node));
  if (ts.findAncestor(name, (node) => node === scope)) return true;
  return scope?.kind === ts.SyntaxKind.SourceFile && importOf(name) !== undefined;
}

function importOf(name: ts.Identifier): ts.ImportSpecifier | undefined {
  for (const statement of name.getSourceFile().statements) {
    const bindings = ts.isImportDeclaration(statement) && statement.importClause?.namedBindings;
    if (!bindings || !ts.isNamedImports(bindings)) continue;
    const found = bindings.elements.find((each) => each.name.text === name.text);
    if (found) return found;
  }
  return undefined;
}

/** Returns the name that a function has in the file that it is from. */
function nameOfCalled({ expression }: ts.CallExpression): string {
  if (ts.isPropertyAccessExpression(expression)) return expression.name.text;
  if (!ts.isIdentifier(expression)) return '';
  return importOf(expression)?.propertyName?.text ?? expression.text;
}
