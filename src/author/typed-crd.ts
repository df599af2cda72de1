import type { CustomResourceDefinition, StructuralSchema } from '../contract/crd.js';
import type { CustomResourceProps, Generated } from '../contract/kind.js';
import type { AnyObject } from '../contract/object.js';
import type { GeneratedName, GeneratedPart } from './generated.js';
import type { ObservedChildOf } from './kubernetes-types.js';
import type { LibrarySchema } from './library-schemas.js';
import type { ReferenceProps, ReferencesOf } from './references.js';

declare const TYPES: unique symbol;

/** A CRD whose types are known; made by `defineCrd`. At run time it is a CRD, and nothing else. */
export interface TypedCrd<Spec, Status extends object> extends CustomResourceDefinition {
  /** For the compiler alone; never there. */
  readonly [TYPES]?: { readonly spec: Spec; readonly status: Status };
}

/**
 * The spec of a custom resource, as the API server stores it: `SpecOf<typeof crd>` for a CRD of `defineCrd`, or
 * `SpecOf<typeof Website>` for a class that `cdk8s import` has generated.
 *
 * **Caveats.** A generated class has no defaults, so what has one is optional; and it spells the names of fields its own
 * way: `completedTTL` is `completedTtl` there, `is_service` is `isService`. A custom resource has the names of the CRD.
 */
export type SpecOf<Source> =
  Source extends TypedCrd<infer Spec, object>
    ? Spec
    : Source extends abstract new (scope: never, id: never, props: infer Props) => unknown
      ? Props extends { readonly spec?: infer Spec }
        ? OnTheWire<Exclude<Spec, undefined>>
        : never
      : never;

/** References of a kind, by the names under which the construct gets them. */
export type References<Source> = Readonly<Record<string, ReferenceProps<SpecOf<Source>>>>;

/**
 * Generated values of a kind, by their names: `as const satisfies GeneratedParts<typeof crd>`; texts that are made of its settings have
 * their type by `GeneratedParts<typeof crd, typeof settingsSchema>`.
 */
export type GeneratedParts<Source, SettingsSchema = undefined> = Readonly<
  Record<string, GeneratedPart<SpecOf<Source>, FromSchema<SettingsSchema>>>
>;

/** Status of a CRD of `defineCrd`, beside `observedGeneration` and `conditions`. */
export type StatusOf<Source> = Source extends TypedCrd<unknown, infer Status> ? Status : never;

/**
 * The props of the construct that renders a custom resource: `constructor(scope, id, { metadata, spec }: PropsOf<typeof crd>)`;
 * with what the kind declares beside it, `PropsOf<typeof crd, { references: typeof references; generated: typeof generated }>`;
 * with `observes`, `PropsOf<typeof crd, { children: typeof children }>`; with `remembers`, `finalizes` or `readsRelated`,
 * `PropsOf<typeof crd, { remembers: true; finalizes: true }>`; with `settingsSchema` or `policySchema`,
 * `PropsOf<typeof crd, { settingsSchema: typeof settingsSchema }>`.
 */
export type PropsOf<
  Source,
  Parts extends {
    readonly references?: object;
    readonly generated?: object;
    readonly children?: readonly object[];
    readonly remembers?: true;
    readonly finalizes?: true;
    readonly readsRelated?: true;
    readonly policySchema?: StructuralSchema | LibrarySchema;
    readonly settingsSchema?: StructuralSchema | LibrarySchema;
  } = object,
> = CustomResourceProps<SpecOf<Source>> &
  (Parts extends { readonly references: infer All } ? { readonly references: ReferencesOf<All> } : unknown) &
  (Parts extends { readonly generated: infer Values }
    ? { readonly generated: Generated<GeneratedName<Values>> }
    : unknown) &
  (Parts extends { readonly children: readonly (infer Child)[] }
    ? { readonly observed: readonly ObservedChildOf<Child>[] }
    : unknown) &
  (Parts extends { readonly remembers: true } ? { readonly status: Partial<StatusOf<Source>> } : unknown) &
  (Parts extends { readonly finalizes: true } ? { readonly deleted: boolean } : unknown) &
  (Parts extends { readonly readsRelated: true } ? { readonly related: readonly AnyObject[] } : unknown) &
  (Parts extends { readonly policySchema: infer Of } ? { readonly policy?: FromSchema<Of> } : unknown) &
  (Parts extends { readonly settingsSchema: infer Of } ? { readonly settings: FromSchema<Of> } : unknown);

/** Enums of a generated class are their values, its unions what they hold, and its dates text. */
type OnTheWire<Type> = 0 extends 1 & Type
  ? unknown
  : Type extends string
    ? `${Type}`
    : Type extends number
      ? Numbers<`${Type}`>
      : Type extends Date
        ? string
        : Type extends { readonly value: infer Value }
          ? [keyof Type, number | string] extends ['value', Value]
            ? Value
            : MembersOnTheWire<Type>
          : Type extends readonly (infer Item)[]
            ? readonly OnTheWire<Item>[]
            : Type extends object
              ? MembersOnTheWire<Type>
              : Type;

type Numbers<Text> = Text extends `${infer Value extends number}` ? Value : never;

type MembersOnTheWire<Type> = { readonly [Name in keyof Type]: OnTheWire<Type[Name]> };

/**
 * The type of the values that a structural schema allows, as the API server stores them: what has a default is there.
 * Where the schema says nothing, it is `unknown`. A part that is defined apart needs `as const`.
 */
export type FromSchema<Schema> = Schema extends undefined
  ? undefined
  : Schema extends {
        readonly '~standard': { readonly types?: { readonly output: infer Output } | undefined };
      }
    ? Output
    : Schema extends { readonly static: infer Static }
      ? Static
      : Schema extends { readonly nullable: true }
        ? NotNull<Schema> | null
        : NotNull<Schema>;

/** Type of members by their schemas, of which none is required; no member at all where there are none. */
export type FromStatus<Properties> = [keyof Properties] extends [never]
  ? Readonly<Record<string, never>>
  : Members<Properties, Present<unknown, Properties>>;

type NotNull<Schema> = Schema extends { readonly 'x-kubernetes-int-or-string': true }
  ? number | string
  : Schema extends { readonly enum: readonly (infer Value)[] }
    ? Value
    : Schema extends { readonly '~kind': string; readonly const: infer Value }
      ? Value
      : Schema extends { readonly '~kind': 'Union'; readonly anyOf: readonly (infer Choice)[] }
        ? FromSchema<Choice>
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
  // Names that the compiler has widened, as in what is spread into a schema, say nothing of any member.
  | (Schema extends { readonly required: readonly (infer Name)[] }
      ? string extends Name
        ? never
        : Name
      : never)
  | {
      [Name in keyof Properties]: HasDefault<Properties[Name]> extends true ? Name : never;
    }[keyof Properties];

type HasDefault<Schema> = Schema extends { readonly default: infer Default }
  ? // A method of zod.
    Default extends undefined | ((...given: never) => unknown)
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
