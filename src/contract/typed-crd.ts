import type { CustomResourceDefinition } from './crd.js';
import type { CustomResourceProps } from './kind.js';

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
 * **Caveats.** A generated class tells no defaults, so what has one is optional; and it spells the names of fields its own
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

/** What a CRD of `defineCrd` has in its status, beside `observedGeneration` and `conditions`. */
export type StatusOf<Source> = Source extends TypedCrd<unknown, infer Status> ? Status : never;

/** The props of the construct that renders a custom resource: `constructor(scope, id, { metadata, spec }: PropsOf<typeof crd>)`. */
export type PropsOf<Source> = CustomResourceProps<SpecOf<Source>>;

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
            : Members<Type>
          : Type extends readonly (infer Item)[]
            ? readonly OnTheWire<Item>[]
            : Type extends object
              ? Members<Type>
              : Type;

type Numbers<Text> = Text extends `${infer Value extends number}` ? Value : never;

type Members<Type> = { readonly [Name in keyof Type]: OnTheWire<Type[Name]> };
