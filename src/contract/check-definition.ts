import { checkType } from './check-type.js';
import type { CrdVersion, CustomResourceDefinition } from './crd.js';
import { OperatorError } from './error.js';

const OPTIONS = [
  'crd',
  'construct',
  'children',
  'formerChildren',
  'related',
  'handOver',
  'policySchema',
  'status',
];
const TYPE_OPTIONS = ['apiVersion', 'kind', 'plural', 'namespaced'];
const CHILD_OPTIONS = [...TYPE_OPTIONS, 'recreate', 'optional', 'keep'];
const RELATED_OPTIONS = [...TYPE_OPTIONS, 'selector', 'keep', 'nameOf'];
const EXAMPLE = "{ apiVersion: 'apps/v1', kind: 'Deployment' }";

/**
 * Holds what was given to `defineKind` against what it takes, for authors who write plain JavaScript.
 * @throws OperatorError `InvalidDefinition`
 */
export function checkKindProps(props: unknown): void {
  if (!isMap(props)) throw invalid('defineKind', `takes { crd, construct, children }, not ${shown(props)}`);
  checkOptions('defineKind', props, OPTIONS);
  if (!isMap(props.crd) && typeof props.crd !== 'string') {
    throw invalid('defineKind: crd', `give the CRD or its file, e.g. new URL('./crd.yaml', import.meta.url)`);
  }
  // Known by what a subclass inherits, of whatever copy of the package.
  if (typeof (props.construct as { isConstruct?: unknown } | undefined)?.isConstruct !== 'function') {
    throw invalid(
      'defineKind: construct',
      `give a class that extends Construct, such as class Website extends Construct { constructor(scope, id, { metadata, spec }) { super(scope, id); ... } }, not ${shown(props.construct)}`,
    );
  }
  checkTypes('defineKind: children', props.children, CHILD_OPTIONS);
  if (props.formerChildren !== undefined)
    checkTypes('defineKind: formerChildren', props.formerChildren, TYPE_OPTIONS);
  if (props.related !== undefined) checkRelated(props.related);
  for (const option of ['handOver', 'status'])
    if (props[option] !== undefined) checkFunction(`defineKind: ${option}`, props[option]);
  if (props.policySchema !== undefined && !isMap(props.policySchema))
    throw invalid('defineKind: policySchema', `give a schema, not ${shown(props.policySchema)}`);
}

/**
 * The status is written by the engine, and the API server drops what the schema doesn't list: such a status would
 * differ each time.
 * @throws OperatorError `InvalidDefinition`
 */
export function checkStatusSchema(crd: CustomResourceDefinition, version: CrdVersion): void {
  const where = `CRD ${crd.metadata.name}, version ${version.name}`;
  if (!version.subresources?.status) {
    throw invalid(where, 'add "subresources: { status: {} }", the status is written through it');
  }
  const status = version.schema.openAPIV3Schema.properties?.status;
  if (status?.['x-kubernetes-preserve-unknown-fields']) return;
  for (const [field, type] of [
    ['observedGeneration', 'integer'],
    ['conditions', 'array'],
  ] as const) {
    if (status?.properties?.[field]?.type === type) continue;
    throw invalid(
      where,
      `add "${field}", of type ${type}, to the properties of the status: it is written for every kind`,
    );
  }
}

function checkTypes(path: string, types: unknown, options: readonly string[]): void {
  if (!Array.isArray(types)) throw invalid(path, `give a list such as [${EXAMPLE}], not ${shown(types)}`);
  types.forEach((type: unknown, index) => {
    const at = `${path}[${String(index)}]`;
    if (!isMap(type) || typeof type.apiVersion !== 'string' || typeof type.kind !== 'string') {
      throw invalid(at, `write ${EXAMPLE}, not ${shown(type)}`);
    }
    checkOptions(at, type, options);
    checkType(at, { apiVersion: type.apiVersion, kind: type.kind });
    for (const option of ['recreate', 'optional'])
      if (type[option] !== undefined && typeof type[option] !== 'boolean')
        throw invalid(`${at}.${option}`, `give true or false, not ${shown(type[option])}`);
    if (type.keep !== undefined) checkFunction(`${at}.keep`, type.keep);
  });
}

function checkRelated(types: unknown): void {
  checkTypes('defineKind: related', types, RELATED_OPTIONS);
  (types as readonly Record<string, unknown>[]).forEach(({ selector, keep, nameOf }, index) => {
    const at = `defineKind: related[${String(index)}]`;
    if (typeof selector !== 'string' || selector.trim() === '') {
      const why =
        "every object of the type in the cluster would be read; give a label selector such as 'demo.io/widget'";
      throw invalid(`${at}.selector`, `${why}, not ${shown(selector)}`);
    }
    checkFunction(`${at}.keep`, keep);
    checkFunction(`${at}.nameOf`, nameOf);
  });
}

function checkFunction(path: string, value: unknown): void {
  if (typeof value !== 'function') throw invalid(path, `give a function, not ${shown(value)}`);
}

function checkOptions(path: string, given: Record<string, unknown>, known: readonly string[]): void {
  const unknown = Object.keys(given).find((option) => !known.includes(option));
  if (unknown) throw invalid(path, `doesn't know the option ${unknown}; it takes ${known.join(', ')}`);
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function shown(value: unknown): string {
  if (typeof value === 'function') return `the function ${value.name || 'without a name'}`;
  if (isMap(value)) return `an object with ${Object.keys(value).join(', ') || 'nothing in it'}`;
  if (value === undefined) return 'nothing';
  return Array.isArray(value) ? 'a list' : JSON.stringify(value);
}

function invalid(where: string, what: string): OperatorError {
  return new OperatorError({ reason: 'InvalidDefinition', message: `${where}: ${what}` });
}
