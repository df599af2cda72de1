import ts from 'typescript';

/** A declaration as it is written, without its body, its docstring and `export`; several where it is overloaded. */
export function declarationOf(symbol: ts.Symbol, checker: ts.TypeChecker): string {
  const declarations = symbol.declarations ?? [];
  const functions = declarations.filter((declaration) => ts.isFunctionDeclaration(declaration));
  const overloads = functions.filter(({ body }) => !body);
  const told = overloads.length > 0 ? overloads : declarations;
  return told.map((declaration) => textOf(declaration, checker)).join('\n');
}

function textOf(declaration: ts.Declaration, checker: ts.TypeChecker): string {
  if (ts.isInterfaceDeclaration(declaration)) return `interface ${head(declaration)}`;
  if (ts.isClassDeclaration(declaration)) return `class ${head(declaration)}`;
  if (ts.isTypeAliasDeclaration(declaration)) return aliasText(declaration);
  if (ts.isVariableDeclaration(declaration)) return variableText(declaration, checker);
  if (ts.isFunctionDeclaration(declaration)) {
    const { parameters, result } = signatureText(declaration, checker);
    return `function ${declaration.name?.text ?? ''}${parameters}: ${result};`;
  }
  throw new Error(`The reference can't tell of ${ts.SyntaxKind[declaration.kind]}`);
}

/** Type parameters and parameters, and the result, of a function or method. */
export function signatureText(
  declaration: ts.FunctionDeclaration | ts.MethodDeclaration | ts.MethodSignature,
  checker: ts.TypeChecker,
): { readonly parameters: string; readonly result: string } {
  const { typeParameters, parameters, type } = declaration;
  const result = type ? withoutComments(type) : inferredResult(declaration, checker);
  return { parameters: generics(typeParameters) + parametersText(parameters), result };
}

function inferredResult(declaration: ts.SignatureDeclaration, checker: ts.TypeChecker): string {
  const signature = checker.getSignatureFromDeclaration(declaration);
  return signature ? checker.typeToString(signature.getReturnType()) : 'unknown';
}

export function parametersText(parameters: readonly ts.ParameterDeclaration[]): string {
  return `(${parameters.map(parameterText).join(', ')})`;
}

/** One that is taken apart is named by its type: `options` for `DeleteOptions`. */
function parameterText({
  name,
  dotDotDotToken,
  questionToken,
  type,
  initializer,
}: ts.ParameterDeclaration): string {
  const typeName = type ? withoutComments(type) : '';
  const word = /[A-Z][a-z]*(?=<|$)/.exec(typeName)?.[0].toLowerCase() ?? 'options';
  return [
    dotDotDotToken ? '...' : '',
    ts.isIdentifier(name) ? name.text : word,
    questionToken ? '?' : '',
    type ? `: ${typeName}` : '',
    initializer ? ` = ${initializer.getText()}` : '',
  ].join('');
}

/** The type of a property or variable: as it is written or, where it is inferred, as the compiler sees it. */
export function typeText(declaration: ts.Declaration, checker: ts.TypeChecker): string {
  const { type } = declaration as ts.PropertyDeclaration | ts.VariableDeclaration;
  if (type) return withoutComments(type);
  const symbol = checker.getSymbolAtLocation(ts.getNameOfDeclaration(declaration) ?? declaration);
  return symbol ? checker.typeToString(checker.getTypeOfSymbol(symbol)) : 'unknown';
}

type Headed = ts.InterfaceDeclaration | ts.ClassDeclaration | ts.TypeAliasDeclaration;

/** The name with its type parameters and what it extends. */
function head(declaration: Headed): string {
  const heritage = ts.isTypeAliasDeclaration(declaration) ? [] : (declaration.heritageClauses ?? []);
  const name = `${declaration.name?.text ?? ''}${generics(declaration.typeParameters)}`;
  return [name, ...heritage.map(withoutComments)].join(' ');
}

/** What is computed is told by its docstring, and properties are listed. */
function aliasText(declaration: ts.TypeAliasDeclaration): string {
  const { type } = declaration;
  const isTold = ts.isConditionalTypeNode(type) || ts.isMappedTypeNode(type) || ts.isTypeLiteralNode(type);
  return `type ${head(declaration)}${isTold ? '' : ` = ${type.getText()};`}`;
}

function variableText(declaration: ts.VariableDeclaration, checker: ts.TypeChecker): string {
  const name = `const ${declaration.name.getText()}`;
  const { initializer, type } = declaration;
  if (!type && initializer && ts.isLiteralExpression(initializer))
    return `${name} = ${initializer.getText()};`;
  return `${name}: ${typeText(declaration, checker)};`;
}

function generics(parameters: readonly ts.TypeParameterDeclaration[] | undefined): string {
  return parameters ? `<${parameters.map(withoutComments).join(', ')}>` : '';
}

const printer = ts.createPrinter({ removeComments: true });

/** On one line. */
function withoutComments(node: ts.Node): string {
  const text = printer.printNode(ts.EmitHint.Unspecified, node, node.getSourceFile());
  return text.replaceAll(/\s+/g, ' ').trim();
}
