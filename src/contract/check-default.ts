import { OperatorError } from './error.js';

type Schema = Readonly<Record<string, unknown>>;

/**
 * The API server refuses a CRD with a default that its own schema refuses.
 * @param where it stands, for the message
 * @throws OperatorError `InvalidDefinition`
 */
export function checkDefault(where: string, schema: Schema): void {
  const { type, default: value, enum: values } = schema;
  if (value === undefined || (value === null && schema.nullable === true)) return;
  const text = JSON.stringify(value);
  if (typeof type === 'string' && !isOfType(value, type)) {
    const meant =
      typeof value === 'string' && isOfType(parsed(value), type) ? `; write default: ${value}` : '';
    throw invalid(where, `has the default ${text}, which is no ${type}${meant}`);
  }
  if (Array.isArray(values) && !values.some((known) => JSON.stringify(known) === text)) {
    const known = values.map((one) => JSON.stringify(one)).join(', ');
    throw invalid(where, `has the default ${text}, which isn't among the values; write one of ${known}`);
  }
  const [path] = lackingIn(schema, value, '');
  if (path !== undefined)
    throw invalid(
      where,
      `has the default ${text}, which lacks ${path}; add it to the default, or require it no more`,
    );
}

function isOfType(value: unknown, type: string): boolean {
  if (type === 'integer') return Number.isInteger(value);
  if (type === 'array') return Array.isArray(value);
  return type === 'object' ? isMap(value) : typeof value === type;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The paths of members that a value has to have and hasn't; those with a default of their own may be left out. */
function lackingIn(schema: unknown, value: unknown, path: string): string[] {
  if (!isMap(schema)) return [];
  if (Array.isArray(value))
    return value.flatMap((item, index) => lackingIn(schema.items, item, `${path}[${index}]`));
  if (!isMap(value)) return [];
  const at = (name: string): string => (path ? `${path}.${name}` : name);
  const properties = isMap(schema.properties) ? schema.properties : {};
  const required = Array.isArray(schema.required) ? (schema.required as readonly string[]) : [];
  const memberOf = (name: string): unknown =>
    Object.hasOwn(properties, name) ? properties[name] : schema.additionalProperties;
  const missing = required.filter((name) => !Object.hasOwn(value, name) && !hasDefault(memberOf(name)));
  return [
    ...missing.map(at),
    ...Object.entries(value).flatMap(([name, member]) => lackingIn(memberOf(name), member, at(name))),
  ];
}

function hasDefault(schema: unknown): boolean {
  return isMap(schema) && schema.default !== undefined;
}

function isMap(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function invalid(where: string, what: string): OperatorError {
  return new OperatorError({ reason: 'InvalidDefinition', message: `${where}: ${what}` });
}
