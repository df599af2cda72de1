/** Units of quantities. @see https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/ */
const UNITS: Readonly<Record<string, number>> = {
  ...{ n: 1e-9, u: 1e-6, m: 1e-3, '': 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18 },
  ...{ Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60 },
};

/** A value in which quantities are numbers, since the API server writes `1000m` as `1`. */
export function withNumericQuantities(value: unknown, path: readonly string[] = []): unknown {
  if (Array.isArray(value)) return value.map((item) => withNumericQuantities(item, path));
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(
      Object.entries(value).map(([key, inner]) => [key, withNumericQuantities(inner, [...path, key])]),
    );
  }
  const isQuantity = path.at(-3) === 'resources' || path.at(-1) === 'divisor';
  return isQuantity ? quantity(String(value)) : value;
}

function quantity(text: string): number | string {
  const match = /^([+-]?[\d.]+(?:[eE][+-]?\d+)?)([numkMGTPE]?|[KMGTPE]i)$/.exec(text);
  const unit = UNITS[match?.[2] ?? ''];
  // Rounded, since 0.1 and 100 thousandths differ in their last bit.
  return match && unit !== undefined ? Number((Number(match[1]) * unit).toPrecision(12)) : text;
}
