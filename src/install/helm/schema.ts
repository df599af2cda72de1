import type { StructuralSchema } from '../../contract/crd.js';
import type { Kind } from '../../contract/kind.js';
import { MONITORING_PARTS } from '../props.js';
import { INSTALLATION_LABELS } from '../names.js';
import type { ChartProps } from './values.js';
import { kindKey, chartOptions, hasOwnPolicy, optionName } from './values.js';
import { partValue } from './parts.js';

type Schema = Readonly<Record<string, unknown>>;

const NAMESPACE = { type: 'string', maxLength: 63, pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$' };

/** What values a chart takes, as Helm checks them before it renders anything. */
export function valuesSchema(props: ChartProps): Schema {
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    ...closed({
      image: image(),
      replicas: { type: 'integer', minimum: 1 },
      kinds: kinds(props.kinds),
      watchNamespaces: { type: 'array', uniqueItems: true, items: NAMESPACE },
      options: options(props),
      policy: policy(props),
      monitoring: monitoring(),
      crds: closed({ enabled: { type: 'boolean' } }),
      resources: { type: 'object' },
      imagePullSecrets: { type: 'array', items: closed({ name: { type: 'string', minLength: 1 } }) },
      nodeSelector: { type: 'object', additionalProperties: { type: 'string' } },
      tolerations: { type: 'array', items: { type: 'object' } },
      priorityClassName: { type: 'string' },
      // Helm's own, for charts in charts.
      global: { type: 'object' },
    }),
    required: ['image', 'replicas', 'kinds', 'monitoring', 'crds'],
  };
}

function closed(properties: Schema): Schema {
  return { type: 'object', additionalProperties: false, properties };
}

/** A tag or a digest, since an image without either may be another one tomorrow. */
function image(): Schema {
  return {
    ...closed({
      repository: {
        type: 'string',
        pattern: '^[A-Za-z0-9][A-Za-z0-9_.-]*(:[0-9]+)?(/[A-Za-z0-9_.-]+)*$',
      },
      tag: { type: 'string', pattern: '^([A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?$' },
      digest: { type: 'string', pattern: '^(sha256:[0-9a-f]{64})?$' },
    }),
    required: ['repository'],
    anyOf: ['tag', 'digest'].map((name) => ({
      required: [name],
      properties: { [name]: { minLength: 1 } },
    })),
  };
}

/** At least one has to be on. */
function kinds(all: readonly Kind[]): Schema {
  const keys = all.map((kind) => kindKey(kind, all));
  return {
    ...closed(Object.fromEntries(keys.map((key) => [key, { type: 'boolean' }]))),
    anyOf: keys.map((key) => ({ required: [key], properties: { [key]: { const: true } } })),
  };
}

function options(props: ChartProps): Schema {
  const namespace = '';
  const all = props.kinds.flatMap((kind) => chartOptions(kind, { ...props, namespace }));
  return closed(
    Object.fromEntries(
      all.flatMap(({ flag, use }) => {
        if (use === 'fixed') return [];
        const { list, schema = { type: 'string', minLength: 1 }, description } = flag;
        const value = list ? { type: 'array', items: schema } : schema;
        return [[optionName(flag), { description, ...value }] as const];
      }),
    ),
  );
}

/** Where rights follow from it, it is as it was when the chart was made. */
function policy(props: ChartProps): Schema {
  const sections = props.kinds.flatMap((kind): [string, Schema][] => {
    if (hasOwnPolicy(kind, { ...props, namespace: '' }))
      return [[kind.name, { const: props.policy?.parsed[kind.name] }]];
    return kind.policySchema && !kind.policyAtStart ? [[kind.name, strict(kind.policySchema)]] : [];
  });
  const fixed = props.kinds.filter((kind) => hasOwnPolicy(kind, { ...props, namespace: '' }));
  return { ...closed(Object.fromEntries(sections)), required: fixed.map(({ name }) => name) };
}

function monitoring(): Schema {
  const name = '[A-Za-z0-9]([-\\w.]{0,61}[A-Za-z0-9])?';
  return closed({
    ...Object.fromEntries(MONITORING_PARTS.map((part) => [partValue(part), { type: 'boolean' }])),
    labels: {
      type: 'object',
      additionalProperties: false,
      patternProperties: {
        [`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?${name}$`]: { type: 'string', pattern: `^(${name})?$` },
      },
      // The installation itself sets these.
      properties: Object.fromEntries(INSTALLATION_LABELS.map((label) => [label, false])),
    },
    runbooks: { type: 'string', pattern: '^(https?://[^\\s]+)?$' },
  });
}

/** A schema of Kubernetes, which drops or refuses unknown fields, as a JSON schema. */
function strict(schema: StructuralSchema): Schema {
  const { properties, items, additionalProperties, ...rest } = schema;
  const known = Object.entries(rest).filter(([keyword]) => !keyword.startsWith('x-') && keyword !== 'format');
  return {
    ...Object.fromEntries(known),
    ...(items && { items: strict(items) }),
    ...(typeof additionalProperties === 'object' && { additionalProperties: strict(additionalProperties) }),
    ...(properties && {
      additionalProperties: false,
      properties: Object.fromEntries(Object.entries(properties).map(([name, of]) => [name, strict(of)])),
    }),
  };
}
