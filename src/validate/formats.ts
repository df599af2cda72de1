import { isIP, isIPv4, isIPv6 } from 'node:net';
import { compileRegularExpression } from '../values/regular-expression.js';
import { showValue } from '../values/path.js';
import type { Problem } from './problem.js';

const INT32_MAX = 2 ** 31 - 1;
const FLOAT_MAX = 3.4028234663852886e38;

/** Format of a `pattern` in a schema. */
export const RE2 = 'regular expression of RE2';

const FORMATS_OF_NUMBERS: Readonly<Record<string, (value: number) => boolean>> = {
  int32: (value) => Number.isInteger(value) && Math.abs(value + 0.5) <= INT32_MAX + 0.5,
  int64: Number.isSafeInteger,
  float: (value) => Math.abs(value) <= FLOAT_MAX,
};

const FORMATS_OF_TEXT: Readonly<Record<string, RegExp | ((text: string) => boolean)>> = {
  date: isDate,
  'date-time': isDateTime,
  datetime: isDateTime,
  email: isMailAddress,
  hostname: isHostname,
  uri: isRequestUri,
  uuid: uuid('[0-9a-f]', '[0-9a-f]'),
  uuid3: uuid('3', '[0-9a-f]'),
  uuid4: uuid('4', '[89ab]'),
  uuid5: uuid('5', '[89ab]'),
  byte: /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$/,
  ipv4: isIPv4Format,
  ipv6: isIPv6Format,
  cidr: isCidr,
  mac: isMac,
  duration: (text) => parseDuration(text) !== undefined,
  ssn: /^\d{3}[- ]?\d{2}[- ]?\d{4}$/,
  hexcolor: /^#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})$/,
  rgbcolor:
    /^rgb\(\s*(?:0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*(?:,\s*(?:0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*){2}\)$/,
  'k8s-short-name': isDnsLabel,
  'k8s-long-name': isDnsSubdomain,
  [RE2]: isRegularExpression,
};

/**
 * Reports whether a value has a format as the API server checks it, which lets any that it doesn't know pass.
 * @see https://github.com/kubernetes/apiextensions-apiserver/blob/master/pkg/apiserver/validation/formats.go
 */
export function hasFormat(value: unknown, format: string): boolean {
  if (typeof value === 'number')
    return !Object.hasOwn(FORMATS_OF_NUMBERS, format) || FORMATS_OF_NUMBERS[format]?.(value) === true;
  if (typeof value !== 'string' || !Object.hasOwn(FORMATS_OF_TEXT, format)) return true;
  const check = FORMATS_OF_TEXT[format];
  return check instanceof RegExp ? check.test(value) : check?.(value) === true;
}

function isRegularExpression(pattern: string): boolean {
  try {
    return Boolean(compileRegularExpression(pattern));
  } catch {
    return false;
  }
}

function uuid(version: string, variant: string): RegExp {
  const part = (digits: number): string => `[0-9a-f]{${digits}}`;
  return new RegExp(`^${part(8)}-?${part(4)}-?${version}${part(3)}-?${variant}${part(3)}-?${part(12)}$`, 'i');
}

/** Leading zeros are taken, as they were in old times. */
function sloppy(address: string): string {
  return address.replace(/(^|[.:])0+(?=(?:0|[1-9]\d*)(?:\.|$))/g, '$1');
}

/** Reports whether a text is an IPv4 address, also one that is written as IPv6. */
export function isIPv4Format(text: string): boolean {
  return text.includes('.') && (isIPv4(sloppy(text)) || isIPv6Format(text));
}

/** Reports whether a text is an IPv6 address without a zone. */
function isIPv6Format(text: string): boolean {
  return isIPv6(text) && !text.includes('%');
}

function isCidr(text: string): boolean {
  const [address = '', bits = '', ...rest] = text.split('/');
  const version = address.includes('%') ? 0 : isIP(sloppy(address));
  if (version === 0 || rest.length > 0 || !/^\d+$/.test(bits)) return false;
  return Number(bits) <= (version === 4 ? 32 : 128);
}

const HOST_NAME =
  '^([a-zA-Z0-9\\p{S}\\p{L}]((-?[a-zA-Z0-9\\p{S}\\p{L}]{0,62})?)|([a-zA-Z0-9\\p{S}\\p{L}](([a-zA-Z0-9-\\p{S}\\p{L}]{0,61}[a-zA-Z0-9\\p{S}\\p{L}])?)(\\.)){1,}([a-zA-Z\\p{L}]){2,63})$';

/** @see https://github.com/kubernetes/kube-openapi/blob/master/pkg/validation/strfmt/default.go */
function isHostname(text: string): boolean {
  const isShort = (part: string, bytes: number): boolean => Buffer.byteLength(part) <= bytes;
  return (
    compileRegularExpression(HOST_NAME).test(text) &&
    isShort(text, 255) &&
    text.split('.').every((part) => isShort(part, 63))
  );
}

const AUTHORITY = /^(?:[^@[\]/\s]*@)?(?:\[[\da-fA-F:.]+(?:%25[^\]]*)?\]|[^\s@%[\]{}|\\^`#/]*?)(?::\d*)?$/;

/** Reports whether it may stand in the first line of a request: an absolute URI, or an absolute path. */
export function isRequestUri(text: string): boolean {
  if (text === '' || /[\u0000-\u001f\u007f]/.test(text)) return false;
  const [scheme = ''] = /^[A-Za-z][A-Za-z0-9+.-]*:/.exec(text) ?? [];
  const [rest = ''] = text.slice(scheme.length).split('?');
  if (!rest.startsWith('/')) return scheme !== '' || text === '*';
  const authority = scheme !== '' && rest.startsWith('//') ? rest.slice(2).split('/', 1).join('') : '';
  const path = authority === '' ? rest : rest.slice(2 + authority.length);
  return AUTHORITY.test(authority) && !/%(?![\da-fA-F]{2})/.test(path);
}

const ATOM = "[\\w!#$%&'*+/=?^`{|}~\\u0080-\\u{10ffff}-]+";
const ADDRESS = `(?:${ATOM}(?:\\.${ATOM})*|"(?:[^"\\\\\\n]|\\\\.)*")@(?:${ATOM}(?:\\.${ATOM})*)`;
const MAIL = new RegExp(`^(?:${ADDRESS}|[^<>@,;:\\\\"\\[\\]()]*<${ADDRESS}>)$`, 'u');

/** Reports whether a text is an address of RFC 5322, which may have a name in front. */
export function isMailAddress(text: string): boolean {
  return MAIL.test(text.trim());
}

/** Reports whether a text is a MAC address of 6, 8 or 20 bytes. */
function isMac(text: string): boolean {
  const bytes = /^[\da-f]{2}(?:([:-])[\da-f]{2}(?:\1[\da-f]{2})+)$/i.test(text) ? (text.length + 1) / 3 : 0;
  const words = /^[\da-f]{4}(?:\.[\da-f]{4})+$/i.test(text) ? ((text.length + 1) / 5) * 2 : 0;
  return [6, 8, 20].includes(bytes + words);
}

const DNS_LABEL = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/;

/** Reports whether a text is a DNS-1123 label, as namespaces are named. */
export function isDnsLabel(text: string): boolean {
  return text.length <= 63 && DNS_LABEL.test(text);
}

/** Reports whether a text is a DNS-1123 subdomain, as custom resources are named. */
export function isDnsSubdomain(text: string): boolean {
  return text.length <= 253 && text.split('.').every((part) => DNS_LABEL.test(part));
}

/** Names what is wrong with the names in the metadata of an object; wrong types are left to the schema. */
export function checkNames(metadata: object): Problem[] {
  const { name, generateName, namespace, labels, annotations } = metadata as Readonly<
    Record<string, unknown>
  >;
  const problems = [...checkKeys('labels', labels), ...checkKeys('annotations', annotations)];
  const refuse = (field: string, message: string, remedy: string): void => {
    problems.push({ path: ['metadata', field], message, remedy });
  };
  if (generateName !== undefined)
    refuse(
      'generateName',
      'the name would be made up by the API server',
      'give metadata.name instead, a name is needed to render',
    );
  else if (name === undefined || name === '') refuse('name', 'is missing', 'add it');
  if (typeof name === 'string' && name !== '' && !isDnsSubdomain(name))
    refuse(
      'name',
      `${showValue(name)} is not a DNS subdomain name`,
      'use up to 253 lower-case letters, digits, - and ., and begin and end each part with a letter or digit',
    );
  if (typeof namespace === 'string' && namespace !== '' && !isDnsLabel(namespace))
    refuse(
      'namespace',
      `${showValue(namespace)} is not a DNS label`,
      'use up to 63 lower-case letters, digits and -, and begin and end with a letter or digit',
    );
  return problems;
}

function checkKeys(field: string, map: unknown): Problem[] {
  // The case of an annotation's prefix doesn't matter.
  const isRight = (key: string): boolean =>
    isQualifiedName(field === 'annotations' ? key.toLowerCase() : key);
  return Object.keys(Object(map) as object)
    .filter((key) => typeof map === 'object' && !isRight(key))
    .map((key) => ({
      path: ['metadata', field, key],
      message: `${showValue(key)} is not a key of ${field}`,
      remedy:
        'use up to 63 letters, digits, -, _ and ., and begin and end with a letter or digit; a DNS subdomain and / may stand in front',
    }));
}

/** @see https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set */
function isQualifiedName(text: string): boolean {
  const [name = '', prefix, ...rest] = text.split('/').reverse();
  if (rest.length > 0 || (prefix !== undefined && !isDnsSubdomain(prefix))) return false;
  return name.length <= 63 && /^(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/.test(name);
}

/**
 * Times and durations as the API server reads them, which is not always what their formats say.
 * @see https://github.com/kubernetes/kube-openapi/tree/master/pkg/validation/strfmt
 */

/** Reports whether a text is a day that exists. */
function isDate(text: string): boolean {
  const [, year = '', month = '', day = ''] = /^(\d{4})-(\d\d)-(\d\d)$/.exec(text) ?? [];
  if (year === '') return false;
  const date = new Date(`${text}T00:00:00Z`);
  return date.getUTCMonth() + 1 === Number(month) && date.getUTCDate() === Number(day);
}

const TIME = /^(\d\d):(\d\d):(\d\d)(?:.\d+)?(?:z|[+-]\d\d:\d\d)$/;

/** Reports whether a text is a date and time without leap seconds. */
function isDateTime(text: string): boolean {
  const [date = '', time = ''] = text.toLowerCase().split('t');
  const [, hour = '24', minute = '', second = ''] = TIME.exec(time) ?? [];
  return isDate(date) && hour <= '23' && minute <= '59' && second <= '59';
}

/** Nanoseconds of units: those of Go, and words of which every one that begins with the last is taken too. */
const UNITS: readonly (readonly [nanoseconds: number, exactly: readonly string[], beginning: string])[] = [
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
    const sum = [...parts.replaceAll('μ', 'µ').matchAll(/(?<![\d.])([\d.]+)([a-zµ]+)/g)].reduce(
      (total, [, count, unit = '']) =>
        total + Number(count) * (UNITS.find(([, exactly]) => exactly.includes(unit))?.[0] ?? 0),
      0,
    );
    return sign === '-' ? -sum : sum;
  }
  let sum: number | undefined;
  for (const [, count, word = ''] of text.matchAll(/(?<!\d)(\d+)\s*([A-Za-zµ]+)/g)) {
    const unit = word.toLowerCase();
    const [nanoseconds] =
      UNITS.find(([, exactly, start]) => exactly.includes(unit) || unit.startsWith(start)) ?? [];
    if (nanoseconds !== undefined) sum = (sum ?? 0) + Number(count) * nanoseconds;
  }
  return sum;
}
