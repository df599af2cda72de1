import type { Construct } from 'constructs';
import type { Controller } from './controller.js';
import type { CustomResourceDefinition, StructuralSchema } from './crd.js';
import type { AnyObject, CustomResource } from './object.js';
import type { ResourceType } from './resource.js';

/** What a construct is given: the custom resource, without what only a live object has. */
export interface CustomResourceProps<Spec> {
  readonly metadata: {
    readonly name: string;
    /** @default - the objects are rendered without a namespace */
    readonly namespace?: string;
  };
  /** As the API server would store it: validated, and with the defaults of the schema. */
  readonly spec: Spec;
  /**
   * The API version that is rendered: a construct may serve several groups.
   * @default - the one that the construct was written for
   */
  readonly apiVersion?: string;
  /**
   * The section of this kind in the admin's policy, valid by the kind's `policySchema`. What it forbids is refused with
   * an OperatorError of the reason `PolicyDenied`.
   * @default - nothing is forbidden
   */
  readonly policy?: unknown;
}

/** What the admin allows, by the name of the kind, e.g. `appservice`; from `--policy`. */
export type Policy = Readonly<Record<string, unknown>>;

/** A cdk8s construct that builds the objects of one custom resource. It must depend on its props alone. */
export type KindConstruct<Spec> = new (
  scope: Construct,
  id: string,
  props: CustomResourceProps<Spec>,
) => Construct;

/**
 * Turns a custom resource into objects: in memory, without I/O, always the same for the same input.
 * @throws OperatorError when the resource can't be rendered
 */
export type Render = (kind: RenderedKind, cr: CustomResource, policy?: Policy) => AnyObject[];

/** A kind as far as the renderer needs to know it. */
export interface RenderedKind {
  readonly type: ResourceType;
  readonly construct: KindConstruct<never>;
  /** Whatever else the construct makes is refused. */
  readonly children: readonly ResourceType[];
  /** How the kind's section of a policy looks. @default - the kind knows no policy, and a section for it is refused */
  readonly policySchema?: StructuralSchema;
}

/** A kind of custom resource and what is done for it: what `reconstruct.config.mjs` lists and every command works on. */
export interface Kind extends RenderedKind {
  /** The kind in lower case, as `--kinds` takes it; unique together with the group. */
  readonly name: string;
  readonly crd: CustomResourceDefinition;
  /** Types that earlier releases rendered; found and pruned, never applied. */
  readonly formerChildren: readonly ResourceType[];
  /** Types that are read for the status, and never written. */
  readonly related: readonly ResourceType[];
  /** The kind as the engine runs it. */
  controller(render: Render): Controller;
}
