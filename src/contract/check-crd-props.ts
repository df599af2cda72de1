import { isGroup, isKind, isKubernetesGroup, isLabel } from './api-names.js';
import { checkSchema } from './check-schema.js';
import { OperatorError } from './error.js';
import { guessPlural } from './resource.js';
import { OWN_STATUS } from './status-schema.js';
import { suggest } from './suggest.js';

const OPTIONS = [
  ...['group', 'kind', 'version', 'plural', 'shortNames', 'categories', 'scope'],
  ...['description', 'spec', 'status', 'columns', 'rules'],
];
/** @see https://kubernetes.io/docs/reference/kubernetes-api/extend-resources/custom-resource-definition-v1/#JSONSchemaProps */
const OF_A_RULE = ['rule', 'message', 'messageExpression', 'fieldPath', 'reason', 'optionalOldSelf'];

/**
 * Holds what was given to `defineCrd` against what it takes, for authors who write plain JavaScript too.
 * @throws OperatorError `InvalidDefinition`
 */
export function checkCrdProps(given: unknown): void {
  if (!isMap(given)) throw invalid('', 'takes { group, kind, description, spec }');
  const unknown = Object.keys(given).find((option) => !OPTIONS.includes(option));
  if (unknown !== undefined)
    throw invalid('', `doesn't know the option ${unknown}; it takes ${OPTIONS.join(', ')}`);
  checkNames(given);
  if (typeof given.description !== 'string' || given.description.trim() === '')
    throw invalid('description', `say what the kind is; write description: 'A guestbook on the web.'`);
  if (!isMap(given.spec) || given.spec.type !== 'object')
    throw invalid('spec', `is the schema of an object; write spec: { type: 'object', properties: { ... } }`);
  checkSchema('defineCrd: spec', given.spec);
  checkStatus(given.status ?? {});
  for (const list of ['columns', 'rules', 'shortNames', 'categories'])
    if (given[list] !== undefined && !Array.isArray(given[list])) throw invalid(list, 'give a list');
  for (const list of ['shortNames', 'categories']) checkLabels(list, given[list] ?? []);
  checkRules(given.rules ?? []);
}

function checkNames({ group, kind, version, plural, scope }: Readonly<Record<string, unknown>>): void {
  if (!isGroup(group))
    throw invalid('group', `is a domain in lower case, not ${shown(group)}; write group: 'web.example.com'`);
  if (isKubernetesGroup(group))
    throw invalid('group', `${group} is kept for Kubernetes itself; take a domain of your own`);
  if (!isKind(kind))
    throw invalid('kind', `is one word in PascalCase, not ${shown(kind)}; write kind: '${pascalCase(kind)}'`);
  if (plural !== undefined && !isLabel(plural))
    throw invalid('plural', `is in lower case, not ${shown(plural)}; write plural: '${guessPlural(kind)}'`);
  if (
    version !== undefined &&
    (typeof version !== 'string' || !/^v[1-9]\d*((alpha|beta)[1-9]\d*)?$/.test(version))
  )
    throw invalid('version', `is v1, v1beta1 or the like, not ${shown(version)}; write version: 'v1'`);
  if (scope !== undefined && scope !== 'Namespaced' && scope !== 'Cluster')
    throw invalid('scope', `is 'Namespaced' or 'Cluster', not ${shown(scope)}`);
}

function checkLabels(list: string, names: unknown): void {
  (names as readonly unknown[]).forEach((name, index) => {
    if (isLabel(name)) return;
    const lower = typeof name === 'string' ? name.toLowerCase() : undefined;
    const line = isLabel(lower) ? `; write '${lower}'` : '';
    throw invalid(`${list}[${index}]`, `is a name in lower case, not ${shown(name)}${line}`);
  });
}

function checkRules(rules: unknown): void {
  (rules as readonly unknown[]).forEach((rule, index) => {
    const where = `rules[${index}]`;
    if (!isMap(rule) || typeof rule.rule !== 'string')
      throw invalid(
        where,
        `write { rule: 'self.metadata.name.size() <= 52', message: '...' }, not ${shown(rule)}`,
      );
    const unknown = Object.keys(rule).find((member) => !OF_A_RULE.includes(member));
    if (unknown === undefined) return;
    const near = suggest(unknown, OF_A_RULE);
    const remedy = near === undefined ? `it knows ${OF_A_RULE.join(', ')}` : `did you mean ${near}?`;
    throw invalid(where, `a rule knows no ${unknown}; ${remedy}`);
  });
}

function checkStatus(status: unknown): void {
  if (!isMap(status))
    throw invalid('status', 'give schemas by name; write status: { pods: { type: "integer" } }');
  const own = OWN_STATUS.find((name) => Object.hasOwn(status, name));
  if (own !== undefined)
    throw invalid(
      `status.${own}`,
      `the operator writes it for every kind; leave it out, it is there by itself`,
    );
  // A schema in place of its members: who copies from a CRD writes that.
  if (typeof status.type === 'string' && isMap(status.properties))
    throw invalid(
      'status',
      'give the members alone, without type and properties; write status: { pods: { ... } }',
    );
  for (const [name, schema] of Object.entries(status)) checkSchema(`defineCrd: status.${name}`, schema);
}

function pascalCase(kind: unknown): string {
  const words = typeof kind === 'string' ? (kind.match(/[A-Za-z0-9]+/g) ?? []) : [];
  const name = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
  return /^[A-Z]/.test(name) ? name : 'Guestbook';
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function shown(value: unknown): string {
  return value === undefined ? 'nothing' : JSON.stringify(value);
}

function invalid(option: string, what: string): OperatorError {
  const where = option ? `defineCrd: ${option}` : 'defineCrd';
  return new OperatorError({ reason: 'InvalidDefinition', message: `${where}: ${what}` });
}
