/** How the schemas of the types used in tests merge their lists and maps; whatever isn't named is a struct or a scalar. */
type Rule =
  | { readonly keys: readonly string[]; readonly defaults?: Readonly<Record<string, unknown>> }
  | 'atomic'
  | 'set';

const CONTAINERS = '.spec.template.spec.containers';

const RULES: Readonly<Record<string, Rule>> = {
  '.metadata.ownerReferences': { keys: ['uid'] },
  '.metadata.ownerReferences[]': 'atomic',
  '.metadata.finalizers': 'set',
  '.spec.selector': 'atomic',
  '.spec.ports': { keys: ['port', 'protocol'], defaults: { protocol: 'TCP' } },
  [CONTAINERS]: { keys: ['name'] },
  [`${CONTAINERS}[].ports`]: { keys: ['containerPort', 'protocol'], defaults: { protocol: 'TCP' } },
  [`${CONTAINERS}[].env`]: { keys: ['name'] },
  [`${CONTAINERS}[].env[].valueFrom.fieldRef`]: 'atomic',
  [`${CONTAINERS}[].command`]: 'atomic',
  [`${CONTAINERS}[].args`]: 'atomic',
  '.status.conditions': { keys: ['type'] },
  '.status.claims': 'atomic',
};

/** What the API server records as owned when this is applied: `metadata.managedFields[].fieldsV1`. */
export function recordedFields(applied: object): Record<string, unknown> {
  const { apiVersion, kind, metadata, ...rest } = applied as Record<string, unknown>;
  const { name, namespace, uid, resourceVersion, ...owned } = metadata as Record<string, unknown>;
  return fields({ ...(Object.keys(owned).length > 0 && { metadata: owned }), ...rest }, '') ?? {};
}

/** Nothing of an empty list that is merged by items, nor of a map with nothing else in it. */
function fields(value: unknown, path: string): Record<string, unknown> | undefined {
  const rule = RULES[path];
  if (rule === 'atomic' || typeof value !== 'object' || value === null) return {};
  if (!Array.isArray(value)) {
    const members = Object.entries(value).filter(([, child]) => child !== undefined);
    const owned = members.flatMap(([name, child]) => {
      const below = fields(child, `${path}.${name}`);
      return below ? [[`f:${name}`, below] as const] : [];
    });
    return members.length > 0 && owned.length === 0 ? undefined : Object.fromEntries(owned);
  }
  if (rule !== undefined && value.length === 0) return undefined;
  if (rule === 'set') return Object.fromEntries(value.map((item) => [`v:${JSON.stringify(item)}`, {}]));
  if (rule === undefined) return {};
  return Object.fromEntries(
    value.map((item: Record<string, unknown>) => {
      const key = Object.fromEntries(rule.keys.map((name) => [name, item[name] ?? rule.defaults?.[name]]));
      const below = fields(item, `${path}[]`);
      const marked = RULES[`${path}[]`] === 'atomic' ? {} : { '.': {}, ...below };
      return [`k:${JSON.stringify(key)}`, marked];
    }),
  );
}
