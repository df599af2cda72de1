import { OperatorError } from './error.js';
import type { ResourceType } from './resource.js';

/** A structural schema, as far as this project reads it. @see https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema */
export interface StructuralSchema {
  readonly type?: 'string' | 'integer' | 'number' | 'boolean' | 'array' | 'object';
  readonly format?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, StructuralSchema>>;
  readonly additionalProperties?: StructuralSchema | boolean;
  readonly items?: StructuralSchema;
  readonly required?: readonly string[];
  readonly nullable?: boolean;
  readonly minLength?: number;
  readonly maxLength?: number;
  /** A regular expression of RE2. */
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly 'x-kubernetes-int-or-string'?: boolean;
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean;
  readonly 'x-kubernetes-embedded-resource'?: boolean;
  readonly 'x-kubernetes-list-type'?: 'atomic' | 'set' | 'map';
  readonly 'x-kubernetes-list-map-keys'?: readonly string[];
  readonly [keyword: string]: unknown;
}

/** A column of `kubectl get`. */
export interface CrdColumn {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date';
  /** Path of the value, e.g. `.spec.image`; of a list, the first item alone is shown. */
  readonly jsonPath: string;
  readonly description?: string;
  readonly format?: string;
  /** Above 0: only with `-o wide`. @default 0 */
  readonly priority?: number;
}

/** Version of a CRD. */
export interface CrdVersion {
  readonly name: string;
  readonly served: boolean;
  readonly storage: boolean;
  readonly schema: { readonly openAPIV3Schema: StructuralSchema };
  readonly subresources?: { readonly status?: object; readonly scale?: object };
  readonly additionalPrinterColumns?: readonly CrdColumn[];
}

/** `apiextensions.k8s.io/v1`. */
export interface CustomResourceDefinition {
  readonly apiVersion: 'apiextensions.k8s.io/v1';
  readonly kind: 'CustomResourceDefinition';
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly group: string;
    readonly scope: 'Namespaced' | 'Cluster';
    readonly names: {
      readonly kind: string;
      readonly plural: string;
      readonly singular?: string;
      readonly listKind?: string;
      readonly shortNames?: readonly string[];
      readonly categories?: readonly string[];
    };
    readonly versions: readonly CrdVersion[];
  };
}

/** Returns the version of a CRD that is stored; every CRD has exactly one. */
export function storedVersion(crd: CustomResourceDefinition): CrdVersion {
  const version = crd.spec.versions.find((candidate) => candidate.storage);
  if (version) return version;
  const message = `CRD ${crd.metadata.name} stores no version: set "storage: true" on one`;
  throw new OperatorError({ reason: 'InvalidDefinition', message });
}

/** Returns how the API server serves the kind that a CRD defines. */
export function servedType(crd: CustomResourceDefinition, version: CrdVersion): ResourceType {
  const { group, names, scope } = crd.spec;
  return {
    apiVersion: `${group}/${version.name}`,
    kind: names.kind,
    plural: names.plural,
    namespaced: scope === 'Namespaced',
  };
}
