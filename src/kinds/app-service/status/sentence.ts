/** The parts that there are, as one line for people. */
export function sentence(...parts: readonly (string | undefined)[]): string {
  return parts
    .filter((part) => part !== undefined && part !== '')
    .map((part) => (part as string).replace(/\.$/, ''))
    .join('; ');
}
