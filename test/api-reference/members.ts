import ts from 'typescript';
import { repoFolder } from '../../sandbox/paths.js';
import { docstringOf, NO_DOCSTRING } from './docstring.js';
import type { Docstring } from './docstring.js';
import { parametersText, signatureText, typeText } from './source-text.js';

/** What belongs to an interface, a class or a type of properties. */
export interface Member {
  /** With its path, where it is a property of a property; with `new` for a constructor. */
  readonly name: string;
  /** TypeScript; empty where it isn't called. */
  readonly parameters: string;
  /** TypeScript; empty for a constructor. */
  readonly type: string;
  readonly optional: boolean;
  readonly docs: Docstring;
}

const ours = repoFolder();

/** With what it inherits of ours; what has to be given comes first. */
export function membersOf(symbol: ts.Symbol, checker: ts.TypeChecker): Member[] {
  const [declaration] = symbol.declarations?.filter(hasMembers) ?? [];
  if (!declaration) return [];
  const own = propertiesOf(checker.getDeclaredTypeOfSymbol(symbol), checker);
  if (!ts.isClassDeclaration(declaration)) return own;
  const statics = propertiesOf(checker.getTypeOfSymbol(symbol), checker, `${symbol.name}.`);
  return [...constructorOf(declaration), ...statics, ...own];
}

function hasMembers(declaration: ts.Declaration): boolean {
  return (
    ts.isInterfaceDeclaration(declaration) ||
    ts.isClassDeclaration(declaration) ||
    (ts.isTypeAliasDeclaration(declaration) && ts.isTypeLiteralNode(declaration.type))
  );
}

function propertiesOf(type: ts.Type, checker: ts.TypeChecker, path = ''): Member[] {
  const properties = type.getProperties();
  const [optional, needed] = [true, false].map((wanted) =>
    properties.filter((property) => isOptional(property) === wanted),
  );
  return [...needed!, ...optional!].flatMap((property) => memberOf(property, checker, path));
}

/** The member, and the properties that its type lists. */
function memberOf(property: ts.Symbol, checker: ts.TypeChecker, path: string): Member[] {
  const [declaration] = property.declarations ?? [];
  if (!declaration || !isPublic(declaration)) return [];
  const common = {
    ...{ name: path + property.name, parameters: '' },
    ...{ optional: isOptional(property), docs: docstringOf(property, checker) },
  };
  if (ts.isMethodSignature(declaration) || ts.isMethodDeclaration(declaration)) {
    const { parameters, result } = signatureText(declaration, checker);
    return [{ ...common, parameters, type: result }];
  }
  const { type } = declaration as ts.PropertyDeclaration;
  if (!type || !ts.isTypeLiteralNode(type)) return [{ ...common, type: typeText(declaration, checker) }];
  const inner = propertiesOf(checker.getTypeFromTypeNode(type), checker, `${common.name}.`);
  return [{ ...common, type: 'object' }, ...inner];
}

function isOptional(property: ts.Symbol): boolean {
  return (property.flags & ts.SymbolFlags.Optional) !== 0;
}

function constructorOf(declaration: ts.ClassDeclaration): Member[] {
  const constructor = declaration.members.find((member) => ts.isConstructorDeclaration(member));
  if (!constructor || !isVisible(constructor)) return [];
  return [
    {
      ...{ name: `new ${declaration.name?.text ?? ''}`, parameters: parametersText(constructor.parameters) },
      ...{ type: '', optional: false, docs: NO_DOCSTRING },
    },
  ];
}

function isPublic(declaration: ts.Declaration): boolean {
  const { fileName } = declaration.getSourceFile();
  const name = ts.getNameOfDeclaration(declaration);
  return (
    fileName.startsWith(`${ours}/`) &&
    !fileName.includes('/node_modules/') &&
    name !== undefined &&
    ts.isIdentifier(name) &&
    isVisible(declaration)
  );
}

function isVisible(declaration: ts.Declaration): boolean {
  const hidden = ts.ModifierFlags.Private | ts.ModifierFlags.Protected;
  return (ts.getCombinedModifierFlags(declaration) & hidden) === 0 && !isInternal(declaration);
}

/** Whether a docstring says `@internal`: for this project alone. */
export function isInternal(node: ts.Node): boolean {
  return ts.getJSDocTags(node).some(({ tagName }) => tagName.text === 'internal');
}
