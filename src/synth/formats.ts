import { isIP, isIPv4, isIPv6 } from 'node:net';
import { fullFormats } from 'ajv-formats/dist/formats.js';

/** Says what a format looks like, for messages. */
export interface FormatHelp {
  readonly name: string;
  readonly example: string;
}

const INT32_MAX = 2 ** 31 - 1;
const FLOAT_MAX = 3.4028234663852886e38;

/**
 * The formats that the API server checks, as it checks them; it lets any other pass.
 * @see https://github.com/kubernetes/apiextensions-apiserver/blob/master/pkg/apiserver/validation/formats.go
 */
export const FORMATS = {
  int32: numeric((value) => Number.isInteger(value) && Math.abs(value + 0.5) <= INT32_MAX + 0.5),
  int64: numeric((value) => Number.isSafeInteger(value)),
  float: numeric((value) => Math.abs(value) <= FLOAT_MAX),
  double: numeric(() => true),
  date: fullFormats.date,
  'date-time': fullFormats['date-time'],
  datetime: fullFormats['date-time'],
  email: fullFormats.email,
  hostname: fullFormats.hostname,
  uri: fullFormats.uri,
  uuid: fullFormats.uuid,
  byte: /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/,
  ipv4: isIPv4,
  ipv6: isIPv6,
  cidr: isCidr,
  mac: /^(?:[0-9A-Fa-f]{2}([:-]))(?:[0-9A-Fa-f]{2}\1){4}[0-9A-Fa-f]{2}$/,
  duration:
    /^(?:[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|ms|s|m|h)(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|ms|s|m|h))*|0|\d+ ?(?:d|w|day|days|week|weeks|hour|hours|minute|minutes|second|seconds))$/,
};

const HELP: Readonly<Record<string, FormatHelp>> = {
  int32: { name: 'a 32-bit integer', example: `a whole number between ${-INT32_MAX - 1} and ${INT32_MAX}` },
  int64: { name: 'an integer that can be kept exactly', example: 'a whole number below 2^53' },
  float: { name: 'a 32-bit number', example: 'a smaller number' },
  date: { name: 'a date', example: '2026-01-31' },
  'date-time': { name: 'a date and time of RFC 3339', example: '2026-01-31T12:00:00Z' },
  datetime: { name: 'a date and time of RFC 3339', example: '2026-01-31T12:00:00Z' },
  email: { name: 'a mail address', example: 'someone@example.com' },
  hostname: { name: 'a host name', example: 'www.example.com' },
  uri: { name: 'a URI', example: 'https://example.com/path' },
  uuid: { name: 'a UUID', example: '123e4567-e89b-12d3-a456-426614174000' },
  byte: { name: 'base64', example: 'aGVsbG8=' },
  ipv4: { name: 'an IPv4 address', example: '192.0.2.1' },
  ipv6: { name: 'an IPv6 address', example: '2001:db8::1' },
  cidr: { name: 'an address range', example: '192.0.2.0/24' },
  mac: { name: 'a MAC address', example: '02:00:5e:10:00:01' },
  duration: { name: 'a duration', example: '1h30m' },
};

/** What a format is called and what it looks like. */
export function formatHelp(format: string): FormatHelp {
  return HELP[format] ?? { name: `of the format ${format}`, example: `text of the format ${format}` };
}

function numeric(validate: (value: number) => boolean): { type: 'number'; validate: typeof validate } {
  return { type: 'number', validate };
}

function isCidr(text: string): boolean {
  const [address, bits, ...rest] = text.split('/');
  const version = isIP(address ?? '');
  if (version === 0 || rest.length > 0 || !/^\d{1,3}$/.test(bits ?? '')) return false;
  return Number(bits) <= (version === 4 ? 32 : 128);
}
