/** Fields of a log line that say more than its sentence does, in the order they are shown. */
const fields = ['kinds', 'resource', 'controller', 'name', 'reason', 'error'] as const;

/** A line of the controller's JSON log for people; any other line as it is. */
export function readableLogLine(line: string): string {
  const entry = parsed(line);
  if (entry === undefined) return line;
  const details = fields.flatMap((name) => {
    const value = entry[name];
    if (value === undefined) return [];
    return `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`;
  });
  const time = String(entry.time).replace(/^[^T]*T([^Z]*)Z$/, '$1');
  const start = `${time} ${String(entry.level)} ${String(entry.msg)}`;
  return details.length === 0 ? start : `${start} (${details.join(', ')})`;
}

function parsed(line: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const entry: unknown = JSON.parse(line);
    return typeof entry === 'object' && entry !== null && 'msg' in entry ? entry : undefined;
  } catch {
    return undefined;
  }
}
