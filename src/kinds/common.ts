import type { ConditionProps, ConditionStatus } from '../contract/conditions.js';
import type { StructuralSchema } from '../contract/crd.js';
import type { KindFlag } from '../contract/kind.js';

/**
 * Returns an object that stands for what `make` returns, and calls it when a member is first read: to parse the CRD of a kind
 * takes longer than to load all modules.
 */
export function lazily<T extends object>(make: () => T): T {
  let made: T | undefined;
  const target = (): T => (made ??= make());
  return new Proxy({} as T, {
    get: (_, key): unknown => Reflect.get(target(), key),
    has: (_, key) => Reflect.has(target(), key),
    ownKeys: () => Reflect.ownKeys(target()),
    getOwnPropertyDescriptor: (_, key) => Reflect.getOwnPropertyDescriptor(target(), key),
  });
}

type Said<T> = { [Key in keyof T]: Exclude<T[Key], undefined> };

/** Picks the named fields of an object as far as they say something: an empty list says as little as none. */
export function given<T extends object, Key extends keyof T>(
  from: T,
  ...keys: readonly Key[]
): Said<Pick<T, Key>> {
  const said: Partial<T> = {};
  for (const key of keys) {
    const value = from[key];
    if (value !== undefined && !(Array.isArray(value) && value.length === 0)) said[key] = value;
  }
  return said as Said<Pick<T, Key>>;
}

export function condition(
  type: string,
  status: ConditionStatus,
  { reason, message }: Pick<ConditionProps, 'reason' | 'message'>,
): ConditionProps {
  return { type, status, reason, message };
}

/** Form of a flag's value that is checked alike by the command line and by a schema. */
export function matching(pattern: string, maxLength: number, wanted: string) {
  const whole = new RegExp(`^${pattern}$`);
  return {
    check: (value: string) =>
      value.length <= maxLength && whole.test(value) ? undefined : `"${value}" is not ${wanted}`,
    schema: { type: 'string', maxLength, pattern: whole.source },
  } as const satisfies Partial<KindFlag>;
}

/** Schema of a text in an admin's policy; the types of policies are derived from their schemas. */
export function text(description: string, maxLength: number, pattern: string) {
  return { type: 'string', maxLength, pattern: `^${pattern}$`, description } as const;
}

export function oneOf<const Values extends readonly string[]>(description: string, ...values: Values) {
  return { type: 'string', enum: values, description } as const;
}

export function setOf<const Items extends StructuralSchema>(
  description: string,
  items: Items,
  bounds: { readonly maxItems?: number } = {},
) {
  return { type: 'array', description, ...bounds, 'x-kubernetes-list-type': 'set', items } as const;
}
