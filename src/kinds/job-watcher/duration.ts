const NANOSECONDS: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n,
  μs: 1_000n,
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
};
/** Number with its unit. */
const TERM = /(\d*)(?:\.(\d*))?([^\d.]+)/y;
const LIMIT = 1n << 63n;
/** Maximum number of digits: more don't fit into the limit, and of a fraction are below a nanosecond. */
const MAX_DIGITS = 19;

/**
 * Reads a duration as Go does, such as `1h30m`, and rounds it up to whole seconds, since times of Kubernetes have no more.
 * @returns undefined for what Go refuses, and for a negative duration
 * @see https://pkg.go.dev/time#ParseDuration
 */
export function durationSeconds(text: string): number | undefined {
  const terms = text.replace(/^[-+]/, '');
  if (terms === '0') return 0;
  if (terms === '') return undefined;
  let total = 0n;
  for (let at = 0; at < terms.length; at = TERM.lastIndex) {
    TERM.lastIndex = at;
    const [, whole = '', fraction = '', unit = ''] = TERM.exec(terms) ?? [];
    const factor = Object.hasOwn(NANOSECONDS, unit) ? NANOSECONDS[unit] : undefined;
    const digits = whole.replace(/^0+/, '');
    if (factor === undefined || whole + fraction === '' || digits.length > MAX_DIGITS) return undefined;
    const part = fraction.slice(0, MAX_DIGITS).padEnd(MAX_DIGITS, '0');
    total += BigInt(digits) * factor + (BigInt(part) * factor) / 10n ** BigInt(MAX_DIGITS);
    if (total >= LIMIT) return undefined;
  }
  if (text.startsWith('-') && total > 0n) return undefined;
  return Number((total + 999_999_999n) / 1_000_000_000n);
}
