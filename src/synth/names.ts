import type { Problem } from './problem.js';
import { showValue } from './problem.js';

const DNS_LABEL = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/;

/** A DNS-1123 label, as namespaces are named. */
export function isDnsLabel(text: string): boolean {
  return text.length <= 63 && DNS_LABEL.test(text);
}

/** A DNS-1123 subdomain, as custom resources are named. */
export function isDnsSubdomain(text: string): boolean {
  return text.length <= 253 && text.split('.').every((part) => DNS_LABEL.test(part));
}

/** The identity that a document gives its object; nothing of it has been checked yet. */
export interface Identity {
  readonly name?: unknown;
  readonly generateName?: unknown;
  readonly namespace?: unknown;
  readonly labels?: unknown;
  readonly annotations?: unknown;
}

/** Names what is wrong with the names in the metadata of an object; wrong types are left to the schema. */
export function checkNames({ name, generateName, namespace, labels, annotations }: Identity): Problem[] {
  const problems: Problem[] = [...checkKeys('labels', labels), ...checkKeys('annotations', annotations)];
  if (generateName !== undefined) {
    problems.push({
      path: ['metadata', 'generateName'],
      message: 'the name would be made up by the API server',
      remedy: 'give metadata.name instead, a name is needed to render',
    });
  } else if (name === undefined || name === '') {
    problems.push({ path: ['metadata', 'name'], message: 'is missing', remedy: 'add it' });
  }
  if (typeof name === 'string' && name !== '' && !isDnsSubdomain(name)) {
    problems.push({
      path: ['metadata', 'name'],
      message: `${showValue(name)} is not a DNS subdomain name`,
      remedy:
        'use up to 253 lower-case letters, digits, - and ., and begin and end each part with a letter or digit',
    });
  }
  if (typeof namespace === 'string' && namespace !== '' && !isDnsLabel(namespace)) {
    problems.push({
      path: ['metadata', 'namespace'],
      message: `${showValue(namespace)} is not a DNS label`,
      remedy: 'use up to 63 lower-case letters, digits and -, and begin and end with a letter or digit',
    });
  }
  return problems;
}

function checkKeys(field: string, map: unknown): Problem[] {
  if (map === null || typeof map !== 'object') return [];
  // The case of an annotation's prefix doesn't matter.
  const isRight = (key: string): boolean =>
    isQualifiedName(field === 'annotations' ? key.toLowerCase() : key);
  return Object.keys(map)
    .filter((key) => !isRight(key))
    .map((key) => ({
      path: ['metadata', field, key],
      message: `${showValue(key)} is not a key of ${field}`,
      remedy:
        'use up to 63 letters, digits, -, _ and ., and begin and end with a letter or digit; a DNS subdomain and / may stand in front',
    }));
}

/** @see https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set */
function isQualifiedName(text: string): boolean {
  const [name = '', prefix, ...rest] = text.split('/').reverse();
  if (rest.length > 0 || (prefix !== undefined && !isDnsSubdomain(prefix))) return false;
  return name.length <= 63 && /^(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/.test(name);
}
