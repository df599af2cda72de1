import type { StructuralSchema } from '../../../../src/contract/crd.js';
import { storedVersion } from '../../../../src/contract/crd.js';
import { appService } from '../../../../src/kinds/app-service/kind.js';
import { examplesOf, excerpt } from './examples.js';
import type { Example } from './examples.js';
import { fieldsOf } from './fields.js';
import type { Field } from './fields.js';
import { inMarkdown, meaning, rulesOf, ruleText, shape } from './words.js';

const HEADER =
  '<!-- Generated from crds/appservices.kosmos.io.yaml by "npm run reference"; edit that file instead. -->';

/** How many examples a field's text links to. */
const LINKS = 2;

/** Fields that no example can show, since they refer to what only an admission webhook can add to the pod. */
export const WITHOUT_EXAMPLE: Readonly<Record<string, string>> = {
  'resources.claims[]': 'the pod would need a claim of that name, which an AppService does not declare',
  'envs[].valueFrom.fileKeyRef': 'the pod would need a volume of that name, which an AppService cannot name',
};

const root = storedVersion(appService.crd).schema.openAPIV3Schema;
const spec = root.properties!.spec!;
const topNames = Object.keys(spec.properties!);

/** The fields at and below one of the spec. */
export function specFields(name: string): Field[] {
  return fieldsOf(name, spec.properties![name]!, spec.required!.includes(name));
}

export const specNames: readonly string[] = topNames;

/** Every page of the reference by its file's name: one for each field of the spec, the status, and the list of them. */
export function pages(): Map<string, string> {
  return new Map([
    ...topNames.map((name): [string, string] => [`${name}.md`, specPage(name)]),
    ['status.md', statusPage()],
    ['README.md', index()],
  ]);
}

function specPage(name: string): string {
  const fields = specFields(name);
  const examples = examplesOf(name, fields);
  const [top, ...inner] = fields as [Field, ...Field[]];
  const [best] = examples.get(top.path)!;
  const parts = [
    `${HEADER}\n\n# spec.${name}\n`,
    fieldText(top, []),
    ...(best ? [`From ${link(best)}:\n\n\`\`\`yaml\n${excerpt(best, name)}\n\`\`\`\n`] : []),
    ...rulesWithOthers(name),
    ...inner.map((field) => `## \`${field.path}\`\n\n${fieldText(field, examples.get(field.path)!)}`),
  ];
  return parts.join('\n');
}

function statusPage(): string {
  const [top, ...inner] = fieldsOf('status', root.properties!.status!, false) as [Field, ...Field[]];
  const sections = inner.map((field) => `## \`${field.path}\`\n\n${fieldText(field, [])}`);
  return [`${HEADER}\n\n# status\n`, fieldText(top, []), ...sections].join('\n');
}

function index(): string {
  const rows = topNames.map((name) => {
    const fields = specFields(name) as [Field, ...Field[]];
    const [top] = fields;
    const files = examplesOf(name, fields).get(top.path)!.slice(0, 1).map(link);
    return `| [\`${name}\`](${name}.md) | ${firstSentence(top.schema)} | ${files.join(', ')} |`;
  });
  return [
    `${HEADER}\n\n# The fields of AppService\n`,
    `${inMarkdown(root.description!)} What the fields lead to is told in [AppService](../appservice.md).\n`,
    'Each page has type, bounds, default, meaning and rules of a field of `spec` and of all below it, and an example.',
    '"Owned as a whole" means for server-side apply that the last to apply it owns every item. A rule is an expression',
    'of [CEL](https://kubernetes.io/docs/reference/using-api/cel/) that has to hold; its text is what whoever breaks it is told.\n',
    `| field | what it is | example |\n| - | - | - |\n${rows.join('\n')}\n`,
    'The operator writes [`status`](status.md).\n\n## Rules on the whole\n',
    ...rulesOf(root).map((rule) => ruleText(rule, '')),
  ].join('\n');
}

function fieldText(field: Field, examples: readonly Example[]): string {
  const { path, schema, items, like } = field;
  const rules = [...rulesOf(schema), ...rulesOf(items)];
  const why = WITHOUT_EXAMPLE[path];
  return [
    `${shape(field)}\n`,
    `${inMarkdown(meaning(field))}\n`,
    ...(like === undefined ? [] : [`Its fields are those of [\`${like}\`](#${anchor(like)}).\n`]),
    ...(examples.length > 0 ? [`Example: ${examples.slice(0, LINKS).map(link).join(', ')}\n`] : []),
    ...(why === undefined ? [] : [`No example: ${why}.\n`]),
    ...(rules.length > 0 ? ['Rules:\n', ...rules.map((rule) => ruleText(rule, `spec.${path}`))] : []),
  ].join('\n');
}

/** Those that stand at the spec, for they speak of several of its fields: told on the page of each of them. */
function rulesWithOthers(name: string): string[] {
  const rules = rulesOf(spec).filter(({ rule }) => new RegExp(`\\bself\\.${name}\\b`).test(rule));
  return rules.length === 0
    ? []
    : ['Rules with other fields:\n', ...rules.map((rule) => ruleText(rule, 'spec'))];
}

function firstSentence({ description = '' }: StructuralSchema): string {
  return inMarkdown(/^.*?\.(?= [A-Z]|$)/.exec(description)?.[0] ?? description);
}

function link({ file }: Example): string {
  return `[${file}](../../../examples/appservice/${file})`;
}

/** As GitHub names the heading of a field. */
function anchor(path: string): string {
  return path.toLowerCase().replaceAll(/[^\w-]/g, '');
}
