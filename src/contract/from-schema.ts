/**
 * The type of the values that a structural schema allows, as the API server stores them: what has a default is there.
 * Where the schema says nothing, it is `unknown`. A part that is defined apart needs `as const`.
 */
export type FromSchema<Schema> = Schema extends { readonly nullable: true }
  ? NotNull<Schema> | null
  : NotNull<Schema>;

/** The same of schemas by the names of members, of which none is required; no member at all where there are none. */
export type FromStatus<Properties> = [keyof Properties] extends [never]
  ? Readonly<Record<string, never>>
  : Members<Properties, Present<unknown, Properties>>;

type NotNull<Schema> = Schema extends { readonly 'x-kubernetes-int-or-string': true }
  ? number | string
  : Schema extends { readonly enum: readonly (infer Value)[] }
    ? Value
    : Schema extends { readonly type: infer Type }
      ? OfType<Type, Schema>
      : unknown;

type OfType<Type, Schema> = Type extends 'string'
  ? string
  : Type extends 'integer' | 'number'
    ? number
    : Type extends 'boolean'
      ? boolean
      : Type extends 'array'
        ? readonly (Schema extends { readonly items: infer Items } ? FromSchema<Items> : unknown)[]
        : Type extends 'object'
          ? ObjectOf<Schema>
          : unknown;

type ObjectOf<Schema> = Schema extends { readonly properties: infer Properties }
  ? Schema extends { readonly 'x-kubernetes-preserve-unknown-fields': true }
    ? Members<Properties, Present<Schema, Properties>> & AnyMap
    : Members<Properties, Present<Schema, Properties>>
  : Schema extends { readonly additionalProperties: infer Values }
    ? Values extends object
      ? Readonly<Record<string, FromSchema<Values>>>
      : AnyMap
    : AnyMap;

type AnyMap = Readonly<Record<string, unknown>>;

/** The names of the members that are always there. */
type Present<Schema, Properties> =
  | (Schema extends { readonly required: readonly (infer Name)[] } ? Name : never)
  | {
      [Name in keyof Properties]: HasDefault<Properties[Name]> extends true ? Name : never;
    }[keyof Properties];

type HasDefault<Schema> = Schema extends { readonly default: infer Default }
  ? Default extends undefined
    ? false
    : true
  : false;

/** Spelled by the keys of the schema, so that an editor leads from a field to its schema. */
type Members<Properties, Required> = Flat<
  {
    readonly [Name in keyof Properties as Name extends Required ? Name : never]: FromSchema<Properties[Name]>;
  } & {
    readonly [Name in keyof Properties as Name extends Required ? never : Name]?: FromSchema<
      Properties[Name]
    >;
  }
>;

type Flat<Type> = { [Name in keyof Type]: Type[Name] } & {};
