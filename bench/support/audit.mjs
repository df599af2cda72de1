// The API server's audit log as witness: what a user has asked for since a mark.
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

export class Audit {
  constructor(path, user) {
    Object.assign(this, { path, user });
  }

  /** Where the log ends now. */
  mark() {
    const file = openSync(this.path, 'r');
    try {
      return fstatSync(file).size;
    } finally {
      closeSync(file);
    }
  }

  /** One entry for each request since the mark; a watch is logged when it begins and when it ends. */
  since(mark) {
    const entries = new Map();
    const own = `"username":"${this.user}"`;
    for (const line of this.lines(mark)) {
      if (!line.includes(own)) continue;
      const { auditID, verb, objectRef = {}, responseStatus, ...rest } = JSON.parse(line);
      const { resource = '', subresource, name, namespace } = objectRef;
      entries.set(auditID, {
        verb,
        what: subresource ? `${resource}/${subresource}` : resource,
        ...{ name, namespace, code: responseStatus?.code },
        receivedAt: microseconds(rest.requestReceivedTimestamp),
        endedAt: microseconds(rest.stageTimestamp),
      });
    }
    return [...entries.values()];
  }

  lines(mark) {
    const file = openSync(this.path, 'r');
    try {
      const from = Math.max(0, mark - 1);
      const bytes = Buffer.alloc(fstatSync(file).size - from);
      readSync(file, bytes, 0, bytes.length, from);
      // The last piece is empty, or a line that is still being written. So may be the one at the mark, whose rest is the
      // first piece; else that is the end of the line before.
      return bytes
        .toString()
        .split('\n')
        .slice(mark > 0 ? 1 : 0, -1);
    } finally {
      closeSync(file);
    }
  }
}

const READS = new Set(['get', 'list', 'watch']);

export function writes(entries) {
  return entries.filter(({ verb, what }) => !READS.has(verb) && what !== 'leases');
}

/** Everything but open watches and what belongs to the lease. */
export function beyondWatching(entries) {
  return entries.filter(({ verb, what }) => verb !== 'watch' && what !== 'leases');
}

/** How often, by verb and resource: `{ 'patch deployments': 1000 }`. */
export function byKind(entries) {
  const counts = {};
  for (const { verb, what, code } of entries) {
    const failed = code >= 400 ? ` ${code}` : '';
    const kind = `${verb} ${what}${failed}`;
    counts[kind] = (counts[kind] ?? 0) + 1;
  }
  return Object.fromEntries(Object.entries(counts).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** How many of the requests began before an earlier one had ended. */
export function overlaps(entries) {
  const sorted = [...entries].sort((a, b) => a.receivedAt - b.receivedAt);
  return sorted.filter((entry, index) => index > 0 && entry.receivedAt < sorted[index - 1].endedAt).length;
}

/** Milliseconds since 1970, with the microseconds that `Date` drops. */
function microseconds(timestamp) {
  const [, fraction = '0'] = /\.(\d+)Z$/.exec(timestamp) ?? [];
  return Math.floor(Date.parse(timestamp) / 1000) * 1000 + Number(`0.${fraction}`) * 1000;
}
