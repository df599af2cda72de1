/** Of sockets and HTTP/2 sessions that end; not of names that aren't found, connections refused, or slow answers. */
const CODES: readonly unknown[] = ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET', 'UND_ERR_INFO', 'UND_ERR_CLOSED'];

/** The answer began and then ended in the middle, which undici reports as if it were whole. */
export class TruncatedAnswer extends Error {
  constructor() {
    super('The connection ended in the middle of the answer');
    this.name = 'TruncatedAnswer';
  }
}

/** The connection ended under a request: a server that restarts or sends GOAWAY, or a balancer between. */
export function isConnectionLoss(error: unknown): boolean {
  if (error instanceof TruncatedAnswer) return true;
  if (!(error instanceof Error) || !('code' in error)) return false;
  const { code } = error;
  return CODES.includes(code) || (typeof code === 'string' && code.startsWith('ERR_HTTP2_'));
}
