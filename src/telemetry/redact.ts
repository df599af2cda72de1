const REDACTED = '[redacted]';

/** Names of fields whose value nobody should read in a log, in whatever case, with dashes or without. */
const SECRET_NAME =
  '(?:proxy-?)?authorization|(?:set-?)?cookie|[\\w-]*(?:token|passwords?|passwd|secrets?|api-?key)|' +
  '(?:client-?|private-?|tls-?)key(?:-?data)?|(?:client-?)?cert(?:ificate)?(?:-?data)?';
const SECRET_FIELD = new RegExp(`^(?:${SECRET_NAME})$`, 'i');

/** Each hit is replaced by what the second part says. Quotes within a message may be escaped ones. */
const SECRET_TEXT: readonly (readonly [RegExp, string])[] = [
  [/\b(bearer|basic)\s+[\w.~+/-]{6,}=*/gi, `$1 ${REDACTED}`],
  // Whoever logs in to the server through its address.
  [/(\w:\/\/)[^\s/@"\\]+@/g, `$1${REDACTED}@`],
  [/-----BEGIN [A-Z ]+-----.*?(?:-----END [A-Z ]+-----|$)/gs, REDACTED],
  // JSON in base64, with what follows of a JSON web token: service accounts, OIDC and registries use it.
  [/\beyJ[\w-]{8,}(?:\.[\w-]*)*/g, REDACTED],
  // JSON or a query in the middle of a sentence.
  [new RegExp(`("(?:${SECRET_NAME})"\\s*:\\s*")(?:[^"\\\\]|\\\\.)*`, 'gi'), `$1${REDACTED}`],
  [new RegExp(`([?&](?:${SECRET_NAME})=)[^\\s&"']+`, 'gi'), `$1${REDACTED}`],
];

/** Finds out, cheaply, that a line needs no closer look: nearly none does. */
const SUSPICIOUS =
  /authorization|cookie|token|passw|secret|api-?key|(?:client|private|tls)-?key|cert|bearer|basic|@|-----BEGIN|eyJ/i;

/**
 * A line of the log without what gives access to something: values of fields that are named for it, at any depth, and
 * what looks like a credential within any text.
 *
 * **Assumptions.** The line is what is about to be written, one JSON object: whatever way a value has taken into it, a
 * message, the stack of an error, a field of a child logger, it comes by here.
 */
export function redactLine(line: string): string {
  if (!SUSPICIOUS.test(line)) return line;
  try {
    return `${JSON.stringify(redacted(JSON.parse(line)))}\n`;
  } catch {
    return redactText(line);
  }
}

/** The same for text that isn't a line of the log. */
export function redactText(text: string): string {
  let clean = text;
  for (const [pattern, replacement] of SECRET_TEXT) clean = clean.replace(pattern, replacement);
  return clean;
}

function redacted(value: unknown): unknown {
  if (typeof value === 'string') return redactText(value);
  if (Array.isArray(value)) return value.map(redacted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      name,
      SECRET_FIELD.test(name) && inner !== null && typeof inner !== 'boolean' ? REDACTED : redacted(inner),
    ]),
  );
}
