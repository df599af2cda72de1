/**
 * Reconstruct: write a cdk8s construct, get a Kubernetes operator.
 *
 * `defineKind` makes an operator of a construct; `reconstruct.config.mjs` hands it to every command. Kinds that are
 * more than "one custom resource, its own children" are written on the core contract, `Controller`.
 */

// A kind of one's own.
export { defineCrd } from './author/define-crd.js';
export type { CelRule, CrdProps, SchemaProperties } from './author/define-crd.js';
export type { LibrarySchema } from './author/library-schemas.js';
export type {
  FromSchema,
  GeneratedParts,
  PropsOf,
  SpecOf,
  StatusOf,
  TypedCrd,
  References,
} from './author/typed-crd.js';
export type {
  ChildOf,
  ObservedChildOf,
  KeepFunction,
  KubernetesManifest,
  KubernetesTypes,
  ObjectOf,
  PodSpec,
  PodTemplate,
  Wire,
} from './author/kubernetes-types.js';
export { loadCrd } from './author/load-crd.js';
export { servedType, storedVersion } from './contract/crd.js';
export type { CrdColumn, CrdVersion, CustomResourceDefinition, StructuralSchema } from './contract/crd.js';
export { defineKind } from './author/define-kind.js';
export { decorate } from './author/decorate.js';
export type { DecoratedProps, DecorateProps } from './author/decorate.js';
export { defineController } from './author/define-controller.js';
export type { ControllerProps, PlannedResource, StandaloneProps } from './author/define-controller.js';
export { podsOf } from './author/pods.js';
export type { KindProps } from './author/define-kind.js';
export type { ChildTypeProps, ContributedTypeProps } from './author/listed-types.js';
export type {
  RelatedTypeProps,
  Failure,
  StatusFunction,
  StatusInput,
  StatusReport,
} from './author/status.js';
export type { HandOver, HandOverFunction, HandOverReplicasProps, KeptReplicas } from './author/hand-over.js';
export { handOverReplicas, keepReplicas } from './author/hand-over.js';
export type {
  CustomResourceProps,
  Kind,
  KindConstruct,
  KindContext,
  OwnedKind,
  AdminFile,
  AdminFiles,
  Sections,
  Render,
  Rendered,
  RenderedKind,
  RenderedType,
  ContributedType,
  StandaloneController,
  RenderInputs,
  Rendering,
  Rollout,
  Upgrades,
  FlagValues,
  KindFlag,
  Finding,
  RenderTogether,
  RenderedTogether,
  TogetherManifest,
  Find,
  KindReferences,
  Generated,
  KindGenerated,
  Referenced,
  ReferencedByName,
} from './contract/kind.js';
export { OperatorError } from './contract/error.js';
export type { OperatorErrorProps, Retry } from './contract/error.js';
export {
  ADOPT_BY_ANNOTATION,
  ROTATE_ANNOTATION,
  APPLIED_HASH_ANNOTATION,
  childLabels,
  childrenFieldManager,
  selectorLabels,
  statusFieldManager,
} from './contract/names.js';
export type { NamedKind } from './contract/names.js';

// Status of a custom resource.
export { dateConditions, standardConditions } from './author/status.js';
export type { Condition, ConditionProps, ConditionStatus, Phase, Readiness } from './contract/conditions.js';
export { childReadiness, dependencyReadiness, worstReadiness } from './values/readiness.js';

// Objects, and their types.
export { controllerOf, describeRef, objectKey, refOf, splitKey } from './contract/object.js';
export type {
  AnyObject,
  CustomResource,
  KubernetesObject,
  ObjectMeta,
  ObjectRef,
  Owner,
  OwnerReference,
} from './contract/object.js';
export { groupKind, resourceType } from './contract/resource.js';
export type { ResourceType, ResourceTypeProps } from './contract/resource.js';

// The core contract.
export type { PendingChange, PendingReason } from './contract/change.js';
export type { Action, Change, ChangeSet, Drift, FieldConflict, Wait } from './contract/change.js';
export type {
  Controller,
  Found,
  Lookup,
  Metric,
  Query,
  Reader,
  Settle,
  TypeRef,
  Watch,
  Write,
} from './contract/controller.js';
export type {
  Barrier,
  CollectStep,
  CertificateRequest,
  CertificateRequests,
  ContributeStep,
  ComposedTexts,
  Conclusion,
  DriftMode,
  EventProps,
  EventStep,
  Explanation,
  ForeignHandler,
  ForeignStep,
  GenerateStep,
  HandOverStep,
  AppliedBuild,
  OwnStep,
  Plan,
  PruneStep,
  FinalizerStep,
  RememberStep,
  Sample,
  StatusWrite,
  Step,
  Table,
  GeneratedValue,
  GeneratedValues,
} from './contract/plan.js';
export { keepIdentity, keepStatus } from './values/projections.js';

// Rendering, and rights.
export { renderStored } from './render/renderer.js';
export { checksumAnnotations } from './author/references.js';
export type {
  OneOf,
  ReferenceOptions,
  ReferenceProps,
  ReferencesOf,
  StatusReferencesOf,
  ReferenceWays,
} from './author/references.js';
export type { LabelSelector } from './values/label-selector.js';
export type {
  ComposedValue,
  ComposedValues,
  GeneratedCertificate,
  GeneratedName,
  GeneratedPart,
} from './author/generated.js';
export { inheritedMetadata } from './author/inherited-metadata.js';
export { leaseRules, rulesFor } from './install/rules.js';
export type { PolicyRule } from './install/rules.js';
