/** C0 and C1 controls and DEL, but for tab and newline: what a terminal takes for a command. */
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

/** A text from elsewhere, as it may be printed to a terminal: controls become visible, as `\x1b`. */
export function plain(text: string): string {
  return text.replace(CONTROLS, (char) => `\\x${char.charCodeAt(0).toString(16).padStart(2, '0')}`);
}

/** Data with every text in it plain. */
export function plainAll<T>(data: T): T {
  return plained(data) as T;
}

function plained(data: unknown): unknown {
  if (typeof data === 'string') return plain(data);
  if (Array.isArray(data)) return data.map(plained);
  if (typeof data !== 'object' || data === null) return data;
  return Object.fromEntries(Object.entries(data).map(([name, value]) => [plain(name), plained(value)]));
}
