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

const LIMIT = 1n << 63n;

/** One number with its unit. */
const TERM = /(\d*)(?:\.(\d*))?([^\d.]+)/y;

/**
 * Reads a duration as Go does, down to how it rounds what is below a nanosecond.
 * @returns nanoseconds, or undefined where Go refuses the text
 * @see https://pkg.go.dev/time#ParseDuration
 */
export function parseGoDuration(text: string): bigint | undefined {
  const sign = /^[-+]/.exec(text)?.[0] ?? '';
  const terms = text.slice(sign.length);
  if (terms === '0') return 0n;
  const total = terms === '' ? undefined : sum(terms);
  if (total === undefined) return undefined;
  if (sign === '-') return -total;
  return total < LIMIT ? total : undefined;
}

/**
 * A time to wait, rounded up to whole seconds, since times of Kubernetes have no more.
 * @returns undefined where it is none that can pass: no duration, or a negative one
 */
export function durationSeconds(text: string): number | undefined {
  const nanoseconds = parseGoDuration(text);
  if (nanoseconds === undefined || nanoseconds < 0n) return undefined;
  return Number((nanoseconds + 999_999_999n) / 1_000_000_000n);
}

/** At most 2^63, which only a negative duration may reach. */
function sum(terms: string): bigint | undefined {
  let total = 0n;
  for (let at = 0; at < terms.length; at = TERM.lastIndex) {
    TERM.lastIndex = at;
    const [, whole = '', fraction = '', unit = ''] = TERM.exec(terms) ?? [];
    const term = nanosecondsOf(whole, fraction, unit);
    if (term === undefined) return undefined;
    total += term;
    if (total > LIMIT) return undefined;
  }
  return total;
}

function nanosecondsOf(whole: string, fraction: string, unit: string): bigint | undefined {
  const factor = Object.hasOwn(NANOSECONDS, unit) ? NANOSECONDS[unit] : undefined;
  if (factor === undefined || (whole === '' && fraction === '')) return undefined;
  const digits = whole.replace(/^0+/, '');
  // More can't fit, and needn't be computed.
  if (digits.length > 19) return undefined;
  const value = BigInt(digits) * factor + nanosecondsOfFraction(fraction, factor);
  return value > LIMIT ? undefined : value;
}

/** As Go: the digits that fit into 63 bits, in the arithmetic of doubles, what is below a nanosecond cut off. */
function nanosecondsOfFraction(fraction: string, factor: bigint): bigint {
  let value = 0n;
  let scale = 1;
  for (const digit of fraction) {
    const next = value * 10n + BigInt(digit);
    if (value > (LIMIT - 1n) / 10n || next > LIMIT) break;
    value = next;
    scale *= 10;
  }
  return BigInt(Math.trunc(Number(value) * (Number(factor) / scale)));
}
