/** A name as the API server takes it for plurals, short names and the like. */
const LABEL = /^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$/;
const PART_OF_A_DOMAIN = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const KIND = /^[A-Z][A-Za-z0-9]{0,62}$/;
/** @see https://kubernetes.io/docs/reference/using-api/#api-groups */
const KUBERNETES_OWN = /(^|\.)(k8s|kubernetes)\.io$/;
const LONGEST_GROUP = 253;

/** Whether it is at most 63 lower-case letters, digits and dashes, with a letter first and no dash last. */
export function isLabel(name: unknown): name is string {
  return typeof name === 'string' && LABEL.test(name);
}

/** Whether it is a domain in lower case with a dot, of at most 253 characters, and of 63 from dot to dot. */
export function isGroup(name: unknown): name is string {
  if (typeof name !== 'string' || name.length > LONGEST_GROUP) return false;
  const parts = name.split('.');
  return parts.length > 1 && parts.every((part) => PART_OF_A_DOMAIN.test(part));
}

/** Whether a group is kept for Kubernetes itself. */
export function isKubernetesGroup(group: string): boolean {
  return KUBERNETES_OWN.test(group);
}

/** Whether it is one word in PascalCase, of at most 63 characters. */
export function isKind(name: unknown): name is string {
  return typeof name === 'string' && KIND.test(name);
}
