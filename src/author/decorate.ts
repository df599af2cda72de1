import type { Construct } from 'constructs';
import type { CustomResourceProps, KindConstruct, StandaloneController } from '../contract/kind.js';
import { groupKind, resourceType } from '../contract/resource.js';
import type { ResourceTypeProps } from '../contract/resource.js';
import { isSelector, parseLabelSelector } from '../values/label-selector.js';
import { showValue } from '../values/path.js';
import { checkNames, isLabel, NO_NAME, refuse } from './definition.js';
import type { KnownType, Wire } from './kubernetes-types.js';
import { typesIn } from './listed-types.js';
import type { ChildTypeProps } from './listed-types.js';
import { inNamespaces } from './namespace-selector.js';
import { OwnedChildren } from './owned-children.js';

/** Props of a construct that renders children of an object of others. */
export interface DecoratedProps<ApiVersion = unknown, Kind = unknown> {
  /** Name, namespace, labels and annotations, but for annotations of this project and of `kubectl apply`. */
  readonly metadata: CustomResourceProps<unknown>['metadata'];
  /** The object without metadata and status; of a Secret, nothing else. */
  readonly object: [KnownType<ApiVersion, Kind>] extends [never]
    ? Readonly<Record<string, unknown>>
    : Wire<Omit<KnownType<ApiVersion, Kind>, 'metadata' | 'status'>>;
}

/** Parts of a decorator. */
export interface DecorateProps<ApiVersion extends string, Kind extends string> extends ResourceTypeProps {
  /** In lower case, as `--kinds` takes it; its field manager is `<name>-controller`. */
  readonly name: string;
  readonly apiVersion: ApiVersion;
  readonly kind: Kind;
  /** Label selector of the objects, such as `team=web,tier!=db`. @default - whatever their labels */
  readonly selector?: string;
  /** Name of an annotation that the objects have, whatever its value. @default - whatever their annotations */
  readonly annotation?: string;
  readonly construct: new (
    scope: Construct,
    id: string,
    props: DecoratedProps<ApiVersion, Kind>,
  ) => Construct;
  /** Types that the construct may make, in the namespace of the object. */
  readonly children: readonly Omit<ChildTypeProps, 'namespaces' | 'onDelete' | 'keep' | 'claims'>[];
}

const REQUIRED = ['name', 'apiVersion', 'kind', 'construct', 'children'];
const NAMES = [...REQUIRED, 'plural', 'namespaced', 'selector', 'annotation'];
const LISTS = { children: ['recreate', 'createOnly', 'optional'] };
const EXAMPLE = "takes { name, apiVersion: 'apps/v1', kind: 'StatefulSet', annotation, construct, children }";

/**
 * Makes a controller that gives objects of others children, as a Service for each Pod of a StatefulSet: without a CRD.
 *
 * **Guarantees.** Those of `defineKind` for the children. The objects themselves are only read. What is no longer chosen loses its children;
 * what is deleted takes them along, by owner references.
 *
 * **Caveats.** There is no status: what fails is an event about the object, a log line and a metric.
 *
 * @throws OperatorError `InvalidDefinition` where the definition contradicts itself
 */
export function decorate<const ApiVersion extends string, const Kind extends string>(
  props: DecorateProps<ApiVersion, Kind>,
): StandaloneController {
  checkNames('decorate', props, NAMES, EXAMPLE, REQUIRED);
  const { name, selector, annotation } = props;
  refuse(
    'decorate',
    !isLabel(name) && `name: ${NO_NAME}`,
    selector === undefined &&
      annotation === undefined &&
      `every ${props.kind} would be chosen; give selector or annotation`,
    selector !== undefined &&
      !isSelector(selector) &&
      `selector: ${showValue(selector)} is no label selector; write team=web,tier!=db`,
  );
  const type = resourceType(props);
  const { children } = typesIn('decorate', type, { children: props.children }, LISTS);
  const isItself = children.some((child) => groupKind(child) === groupKind(type));
  refuse('decorate', isItself && `children: type ${groupKind(type)} is the decorated one; leave it out`);
  const kind = {
    ...{ name, type, children, decorates: true, readsMetadata: true, formerChildren: [] },
    construct: props.construct as unknown as KindConstruct<never>,
    chosen: {
      ...(selector !== undefined && { selector: parseLabelSelector(selector) }),
      ...(annotation !== undefined && { annotation }),
    },
  };
  return {
    name,
    renders: kind,
    controllers: (context) => [inNamespaces(new OwnedChildren(kind, context), context.namespaceSelector)],
  };
}
