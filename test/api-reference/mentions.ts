import ts from 'typescript';
import { repoFolder } from '../../sandbox/paths.js';
import { isInternal } from './members.js';

/** The types of ours that a declaration names, where whoever uses it meets them. */
export function mentionsOf(symbol: ts.Symbol, checker: ts.TypeChecker): string[] {
  const found = new Set<string>();
  const visit = (node: ts.Node): void => {
    if (ts.isBlock(node) || isHidden(node) || isInternal(node) || isComputed(node)) return;
    if (ts.isTypeReferenceNode(node)) note(node.typeName);
    if (ts.isExpressionWithTypeArguments(node)) note(node.expression);
    node.forEachChild(visit);
  };
  const note = (name: ts.Node): void => {
    const named = checker.getSymbolAtLocation(name);
    if (!named) return;
    const type = named.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(named) : named;
    if (type.declarations?.some(isOurs)) found.add(type.name);
  };
  for (const declaration of symbol.declarations ?? []) visit(declaration);
  return [...found];
}

/** Told by its docstring, and not written down by anybody. */
function isComputed(node: ts.Node): boolean {
  return ts.isConditionalTypeNode(node) || ts.isMappedTypeNode(node);
}

/** Values are read, but what they are made of isn't. */
function isHidden(node: ts.Node): boolean {
  const isValue = ts.isObjectLiteralExpression(node) || ts.isCallExpression(node) || ts.isArrowFunction(node);
  const hidden = ts.ModifierFlags.Private | ts.ModifierFlags.Protected;
  const isMember = ts.isClassElement(node);
  return (
    isValue ||
    (isMember && (ts.getCombinedModifierFlags(node) & hidden) !== 0) ||
    (isMember && node.name !== undefined && ts.isPrivateIdentifier(node.name))
  );
}

function isOurs(declaration: ts.Declaration): boolean {
  const { fileName } = declaration.getSourceFile();
  const isNamed = !ts.isTypeParameterDeclaration(declaration);
  return isNamed && fileName.startsWith(`${repoFolder()}/`) && !fileName.includes('/node_modules/');
}
