import { request } from 'node:https';

/** How to reach an API server as one user. */
export interface ApiAccess {
  readonly url: string;
  /** PEM. */
  readonly ca: string;
  readonly token: string;
}

/** An answer of the API server, whatever its status. */
export interface ApiAnswer {
  readonly status: number;
  readonly body: string;
}

/** Sends one request over a connection of its own. **Errors**: when no answer comes within 5 s. */
export function callApi(
  access: ApiAccess,
  method: 'GET' | 'POST',
  path: string,
  body?: object,
): Promise<ApiAnswer> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${access.token}`, 'content-type': 'application/json' };
    const sent = request(
      new URL(path, access.url),
      { method, headers, ca: access.ca, agent: false, timeout: 5_000 },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString() });
        });
      },
    );
    sent.on('error', reject);
    sent.on('timeout', () => sent.destroy(new Error(`${method} ${path}: no answer within 5 s.`)));
    sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
}
