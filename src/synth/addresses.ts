import { isIP, isIPv4, isIPv6 } from 'node:net';
import { compileRegularExpression } from '../contract/regular-expression.js';

/** Leading zeros are taken, as they were in old times. */
function sloppy(address: string): string {
  return address.replace(/(^|[.:])0+(?=(?:0|[1-9]\d*)(?:\.|$))/g, '$1');
}

/** Also one that is written as IPv6. */
export function isIPv4Format(text: string): boolean {
  return text.includes('.') && (isIPv4(sloppy(text)) || isIPv6Format(text));
}

/** Without a zone. */
export function isIPv6Format(text: string): boolean {
  return isIPv6(text) && !text.includes('%');
}

export function isCidr(text: string): boolean {
  const [address = '', bits = '', ...rest] = text.split('/');
  const version = address.includes('%') ? 0 : isIP(sloppy(address));
  if (version === 0 || rest.length > 0 || !/^\d+$/.test(bits)) return false;
  return Number(bits) <= (version === 4 ? 32 : 128);
}

const HOST_NAME =
  '^([a-zA-Z0-9\\p{S}\\p{L}]((-?[a-zA-Z0-9\\p{S}\\p{L}]{0,62})?)|([a-zA-Z0-9\\p{S}\\p{L}](([a-zA-Z0-9-\\p{S}\\p{L}]{0,61}[a-zA-Z0-9\\p{S}\\p{L}])?)(\\.)){1,}([a-zA-Z\\p{L}]){2,63})$';

/** @see https://github.com/kubernetes/kube-openapi/blob/master/pkg/validation/strfmt/default.go */
export function isHostname(text: string): boolean {
  const isShort = (part: string, bytes: number): boolean => Buffer.byteLength(part) <= bytes;
  return (
    compileRegularExpression(HOST_NAME).test(text) &&
    isShort(text, 255) &&
    text.split('.').every((part) => isShort(part, 63))
  );
}

const AUTHORITY = /^(?:[^@[\]/\s]*@)?(?:\[[\da-fA-F:.]+(?:%25[^\]]*)?\]|[^\s@%[\]{}|\\^`#/]*?)(?::\d*)?$/;

/** What may stand in the first line of a request: an absolute URI, or an absolute path. */
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

/** An address of RFC 5322, which may have a name in front. */
export function isMailAddress(text: string): boolean {
  return MAIL.test(text.trim());
}

/** Of 6, 8 or 20 bytes. */
export function isMac(text: string): boolean {
  const bytes = /^[\da-f]{2}(?:([:-])[\da-f]{2}(?:\1[\da-f]{2})+)$/i.test(text) ? (text.length + 1) / 3 : 0;
  const words = /^[\da-f]{4}(?:\.[\da-f]{4})+$/i.test(text) ? ((text.length + 1) / 5) * 2 : 0;
  return [6, 8, 20].includes(bytes + words);
}
