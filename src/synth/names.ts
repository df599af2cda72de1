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
}

/** Names what is wrong with the name and the namespace of an object; wrong types are left to the schema. */
export function checkNames({ name, generateName, namespace }: Identity): Problem[] {
  const problems: Problem[] = [];
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
