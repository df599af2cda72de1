import { inspect } from 'node:util';
import { OperatorError } from '../contract/error.js';
import { oneOf } from '../values/suggest.js';
import { isMap } from '../values/json.js';

/**
 * Refuses options of unknown names, and required ones that are missing; the compiler knows their types.
 * @param where it stands, for the message
 * @throws OperatorError `InvalidDefinition`, with the place and the line to write
 */
export function checkNames(
  where: string,
  given: unknown,
  names: readonly string[],
  hint: string,
  required: readonly string[] = [],
): void {
  if (!isMap(given)) throw misdefined(where, `${hint}, not ${shownOption(given)}`);
  const unknown = Object.keys(given).find((name) => !names.includes(name));
  const missing = required.find((name) => given[name] === undefined);
  refuse(
    where,
    unknown !== undefined && `unknown option ${unknown}; ${oneOf(unknown, names)}`,
    missing !== undefined && `${hint}; ${missing} is missing`,
  );
}

/** Refuses a definition for the first of its mistakes, if there is any. @throws OperatorError `InvalidDefinition` */
export function refuse(where: string, ...mistakes: readonly (string | false | undefined)[]): void {
  const mistake = mistakes.find(Boolean);
  if (mistake) throw misdefined(where, mistake);
}

/** Returns the error of a definition that can't be what was meant. @param where it stands */
export function misdefined(where: string, what: string): OperatorError {
  return new OperatorError({ reason: 'InvalidDefinition', message: `${where}: ${what}` });
}

/** Returns a value of an author as messages show it, without what is below its members. */
export function shownOption(value: unknown): string {
  return inspect(value, { depth: 0, breakLength: Infinity, maxStringLength: 60 });
}

/** A name as the API server takes it for plurals, short names and the like. */
const LABEL = /^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$/;
const PART_OF_A_DOMAIN = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const KIND = /^[A-Z][A-Za-z0-9]{0,62}$/;
/** @see https://kubernetes.io/docs/reference/using-api/#api-groups */
const KUBERNETES_OWN = /(^|\.)(k8s|kubernetes)\.io$/;
const LONGEST_GROUP = 253;

/** Reports whether it is at most 63 lower-case letters, digits and dashes, with a letter first and no dash last. */
export function isLabel(name: unknown): name is string {
  return typeof name === 'string' && LABEL.test(name);
}

/** Remedy where it isn't. */
export const NO_NAME = 'write lower-case letters, digits and dashes, at most 63, with a letter first';

/** Reports whether it is a domain in lower case with a dot, of at most 253 characters, and of 63 from dot to dot. */
export function isGroup(name: unknown): name is string {
  if (typeof name !== 'string' || name.length > LONGEST_GROUP) return false;
  const parts = name.split('.');
  return parts.length > 1 && parts.every((part) => PART_OF_A_DOMAIN.test(part));
}

/** Reports whether a group is kept for Kubernetes itself. */
export function isKubernetesGroup(group: string): boolean {
  return KUBERNETES_OWN.test(group);
}

/** Reports whether it is one word in PascalCase, of at most 63 characters. */
export function isKind(name: unknown): name is string {
  return typeof name === 'string' && KIND.test(name);
}
