/**
 * Times and durations as the API server reads them, which is not always what their formats say.
 * @see https://github.com/kubernetes/kube-openapi/tree/master/pkg/validation/strfmt
 */

/** A day that there is. */
export function isDate(text: string): boolean {
  const [, year = '', month = '', day = ''] = /^(\d{4})-(\d\d)-(\d\d)$/.exec(text) ?? [];
  if (year === '') return false;
  const date = new Date(`${text}T00:00:00Z`);
  return date.getUTCMonth() + 1 === Number(month) && date.getUTCDate() === Number(day);
}

const TIME = /^(\d\d):(\d\d):(\d\d)(?:.\d+)?(?:z|[+-]\d\d:\d\d)$/;

/** Without leap seconds. */
export function isDateTime(text: string): boolean {
  const [date = '', time = ''] = text.toLowerCase().split('t');
  const [, hour = '24', minute = '', second = ''] = TIME.exec(time) ?? [];
  return isDate(date) && hour <= '23' && minute <= '59' && second <= '59';
}

/** In nanoseconds. */
const GO_UNITS: Readonly<Record<string, number>> = {
  ns: 1,
  us: 1e3,
  µs: 1e3,
  μs: 1e3,
  ms: 1e6,
  s: 1e9,
  m: 60e9,
  h: 3600e9,
};

/** Every word that begins with the last of a line is taken too. */
const LONG_UNITS: readonly (readonly [nanoseconds: number, exactly: readonly string[], beginning: string])[] =
  [
    [1, ['ns'], 'nano'],
    [1e3, ['us', 'µs'], 'micro'],
    [1e6, ['ms'], 'milli'],
    [1e9, ['s'], 'sec'],
    [60e9, ['m'], 'min'],
    [3600e9, ['h', 'hr'], 'hour'],
    [86_400e9, ['d'], 'day'],
    [604_800e9, ['w', 'wk'], 'week'],
  ];

/** The nanoseconds of `1h30m`, or of `3 days` wherever that is in a text; nothing if there is no duration in it. */
export function parseDuration(text: string): number | undefined {
  const [, sign, parts = ''] =
    /^([-+]?)((?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+|0)$/.exec(text) ?? [];
  if (parts !== '') {
    const sum = [...parts.matchAll(/(?<![\d.])([\d.]+)([a-zµμ]+)/g)].reduce(
      (total, [, count, unit]) => total + Number(count) * (GO_UNITS[unit ?? ''] ?? 0),
      0,
    );
    return sign === '-' ? -sum : sum;
  }
  let sum: number | undefined;
  for (const [, count, word = ''] of text.matchAll(/(?<!\d)(\d+)\s*([A-Za-zµ]+)/g)) {
    const unit = word.toLowerCase();
    const [nanoseconds] =
      LONG_UNITS.find(([, exactly, beginning]) => exactly.includes(unit) || unit.startsWith(beginning)) ?? [];
    if (nanoseconds !== undefined) sum = (sum ?? 0) + Number(count) * nanoseconds;
  }
  return sum;
}
