import { storedVersion } from '../../../../src/contract/crd.js';
import { appService } from '../../../../src/kinds/app-service/kind.js';
import { examplesOf } from './examples.js';
import { fieldsOf } from './fields.js';
import type { Field } from './fields.js';
import { inMarkdown, meaning, rulesOf, ruleText, shape } from './words.js';

const INTRO = `<!-- Generated from crds/appservices.kosmos.io.yaml by "npm run reference"; edit that file instead. -->

# The fields of AppService

INTRO_DESCRIPTION [AppService](appservice.md) describes what the fields lead to. "Owned as a whole" means
for server-side apply that the last writer owns every item. A rule is a [CEL](https://kubernetes.io/docs/reference/using-api/cel/)
expression that has to hold; whoever breaks it reads its text.
`;

/** Fields that no example can show, since they refer to what only an admission webhook can add to the pod. */
export const WITHOUT_EXAMPLE: Readonly<Record<string, string>> = {
  'resources.claims[]': 'the pod would need a claim of that name, which an AppService does not declare',
  'envs[].valueFrom.fileKeyRef': 'the pod would need a volume of that name, which an AppService cannot name',
};

const root = storedVersion(appService.crd).schema.openAPIV3Schema;
const spec = root.properties!.spec!;

/** The fields at and below one of the spec. */
export function specFields(name: string): Field[] {
  return fieldsOf(name, spec.properties![name]!, spec.required!.includes(name));
}

export const specNames: readonly string[] = Object.keys(spec.properties!);

/** Returns the page in Markdown: a section for each field of the spec, with all fields below it, and the status. */
export function page(): string {
  const status = fieldsOf('status', root.properties!.status!, false);
  return [
    INTRO.replace('INTRO_DESCRIPTION', inMarkdown(root.description!)),
    ...specNames.map(specSection),
    section('status', status, []),
    `## Rules on the whole\n\n${[...rulesOf(root), ...rulesOf(spec)].map((rule) => ruleText(rule)).join('\n')}\n`,
  ].join('\n');
}

function specSection(name: string): string {
  const fields = specFields(name);
  const shown = examplesOf(name, fields).get(fields[0]!.path)!.slice(0, 2);
  return section(
    `spec.${name}`,
    fields,
    shown.map(({ file }) => `[${file}](../../examples/appservice/${file})`),
  );
}

function section(title: string, fields: readonly Field[], examples: readonly string[]): string {
  const [top, ...inner] = fields as [Field, ...Field[]];
  const lines = [...inner.map(line), ...fields.flatMap(rules)];
  return [
    `## ${title}\n`,
    `${shape(top)}. ${inMarkdown(meaning(top))}${examples.length > 0 ? ` Examples: ${examples.join(', ')}.` : ''}\n`,
    ...(lines.length > 0 ? [`${lines.join('\n')}\n`] : []),
  ].join('\n');
}

function line(field: Field): string {
  const { path, like } = field;
  const why = WITHOUT_EXAMPLE[path];
  const more = [
    ...(like === undefined ? [] : [` Its fields are those of \`${like}\`.`]),
    ...(why === undefined ? [] : [` No example: ${why}.`]),
  ];
  return `- \`${path}\` (${shape(field)}): ${inMarkdown(meaning(field))}${more.join('')}`;
}

function rules({ schema, items, path }: Field): string[] {
  const all = [...rulesOf(schema), ...rulesOf(items)];
  return all.map((rule) => ruleText(rule, path));
}
