// ESLint rules: what documentation comments begin with, words that no comment or message has, and the kinds that no lower room names.

const OPENERS =
  /^(?:By|Of|So|Until|What|Why|It|One|As|Those|To|Who|Whoever|Where|When|How|Nothing|Nobody|Somebody)\b/;
const UNUSED =
  /\b(?:whoever|somebody|nobody|put right|anew|as a rule|so many|for want of|comes home|in vain)\b/i;
const NEUTER_DEFAULT = /@default(?:Value)? - (?:it|they) /;
const QUANTITY =
  /^(?:(?:Maximum|Minimum|Default|Initial|Highest|Lowest|User) )?(?:age|backoff|base|bytes|code|count|delay|depth|duration|exit code|factor|id|interval|length|level|limit|memory|number|percentage|period|port|rate|ratio|share|size|status code|time|timeout|version|width)\b/i;
const REPORTS = /^Reports whether\b|^[^.]*,? and reports whether\b/;

const isBoolean = (annotation) => {
  const type = annotation?.typeAnnotation;
  if (type?.type === 'TSTypePredicate') return !type.asserts;
  const parts = type?.type === 'TSUnionType' ? type.types : [type];
  return (
    parts.some((part) => part?.type === 'TSBooleanKeyword') &&
    parts.every((part) => ['TSBooleanKeyword', 'TSUndefinedKeyword'].includes(part?.type))
  );
};

const isNumber = (node) =>
  node?.type === 'BinaryExpression'
    ? isNumber(node.left) || isNumber(node.right)
    : node?.type === 'Literal' && typeof node.value === 'number';

const summaryOf = (comment) =>
  comment.value
    .split('\n')
    .map((line) => line.trim().replace(/^\*+/, '').trim())
    .join(' ')
    .trim();

export const words = {
  meta: { type: 'suggestion', schema: [] },
  create({ sourceCode, report }) {
    const check = (node, begins, message) => {
      const comment = sourceCode.getCommentsBefore(node).at(-1);
      const summary = comment?.value.startsWith('*') ? summaryOf(comment) : '@';
      if (!summary.startsWith('@') && !begins.test(summary)) report({ loc: comment.loc, message });
    };
    const isExported = ({ parent }) => parent.type.startsWith('Export');
    const checkFunction = (node, { returnType }) => {
      if (isBoolean(returnType)) check(node, REPORTS, 'Begin with "Reports whether"');
    };
    const checkMember = (node, { typeAnnotation }) => {
      const type = typeAnnotation?.typeAnnotation;
      if (type?.type === 'TSFunctionType') checkFunction(node, type);
      else if (isBoolean(typeAnnotation)) check(node, /^Whether\b/, 'Begin with "Whether"');
    };
    const checkUnused = (node, text) => {
      const found = UNUSED.exec(text.replace(/\s+(?:\* )?/g, ' '));
      if (found) report({ loc: node.loc, message: `"${found[0]}" is not used here: say it in plain words` });
    };
    return {
      Program() {
        for (const comment of sourceCode.getAllComments()) {
          checkUnused(comment, comment.value);
          if (!comment.value.startsWith('*')) continue;
          const summary = summaryOf(comment);
          const opener = OPENERS.exec(summary);
          if (opener)
            report({ loc: comment.loc, message: `Begin with a noun or a verb, not "${opener[0]}"` });
          if (NEUTER_DEFAULT.test(summary))
            report({ loc: comment.loc, message: 'Name the default, without "it" or "they"' });
        }
      },
      Literal: (node) => {
        if (typeof node.value === 'string') checkUnused(node, node.value);
      },
      TemplateElement: (node) => {
        checkUnused(node, node.value.raw);
      },
      Identifier(node) {
        if (node.name.startsWith('MOST_')) report({ node, message: 'The prefix is MAX_' });
      },
      VariableDeclaration(node) {
        const [{ id, init }] = node.declarations;
        const start = isExported(node) ? node.parent : node;
        if (/^[A-Z][A-Z\d_]*$/.test(id.name) && isNumber(init))
          check(start, QUANTITY, 'Name the quantity: "Maximum number of ...", "Interval ..."');
        if (init?.type === 'ArrowFunctionExpression') checkFunction(start, init);
      },
      FunctionDeclaration: (node) => {
        checkFunction(isExported(node) ? node.parent : node, node);
      },
      MethodDefinition: (node) => {
        if (node.kind === 'get') checkMember(node, { typeAnnotation: node.value.returnType });
        else checkFunction(node, node.value);
      },
      TSMethodSignature: (node) => {
        if (node.kind === 'get') checkMember(node, { typeAnnotation: node.returnType });
        else checkFunction(node, node);
      },
      TSPropertySignature: (node) => {
        checkMember(node, node);
      },
      PropertyDefinition: (node) => {
        checkMember(node, node);
      },
    };
  },
};

const KINDS = /app-?service|stream-?ingress|job-?watcher/i;

/** The rooms below the built-in kinds name none of them, not even in a comment. */
export const kinds = {
  meta: { type: 'problem', schema: [] },
  create({ sourceCode, report }) {
    return {
      Program() {
        for (const [index, line] of sourceCode.lines.entries()) {
          const found = KINDS.exec(line);
          if (found)
            report({
              loc: { line: index + 1, column: found.index },
              message: `${found[0]} is one kind of many: what it alone needs belongs into src/kinds`,
            });
        }
      },
    };
  },
};
