type Said<T> = { [Key in keyof T]: Exclude<T[Key], undefined> };

/** The named fields of an object as far as they say something: an empty list says as little as none. */
export function given<T extends object, Key extends keyof T>(
  from: T,
  ...keys: readonly Key[]
): Said<Pick<T, Key>> {
  const said = keys.filter((key) => {
    const value: unknown = from[key];
    return value !== undefined && !(Array.isArray(value) && value.length === 0);
  });
  return Object.fromEntries(said.map((key) => [key, from[key]])) as Said<Pick<T, Key>>;
}
