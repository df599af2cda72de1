/** A request on its way through the proxy. */
export interface ProxiedRequest {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly userAgent: string;
  /** Plural, or empty where the path names none; as in `deployments`. */
  readonly resource: string;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly subresource: string | undefined;
  readonly isWatch: boolean;
}

export type Matcher = (request: ProxiedRequest) => boolean;

/** Reads what the head of a request says. */
export function proxiedRequest(method: string, url: string, userAgent = ''): ProxiedRequest {
  const { pathname: path, searchParams: query } = new URL(url, 'https://api');
  const [resource = '', name, subresource] = /^\/api(?:s\/[^/]+)?\/[^/]+\/(.+)$/
    .exec(path)?.[1]
    ?.replace(/^namespaces\/[^/]+\/(?=.)/, '')
    .split('/') ?? [''];
  return {
    ...{ method, path, query, userAgent, resource, name, subresource },
    namespace: /\/namespaces\/([^/]+)\/./.exec(path)?.[1],
    isWatch: method === 'GET' && query.get('watch') === 'true',
  };
}

export const everything: Matcher = () => true;

/** Of one resource, or of all. */
export function watches(resource?: string): Matcher {
  return (request) => request.isWatch && (resource === undefined || request.resource === resource);
}

/** Watches that begin with everything there is. */
export function lists(resource?: string): Matcher {
  const matches = watches(resource);
  return (request) => matches(request) && request.query.get('sendInitialEvents') === 'true';
}

/** Requests that change something: of one resource, or of one object of it, its subresources included. */
export function writesTo(resource?: string, name?: string): Matcher {
  return (request) =>
    request.method !== 'GET' &&
    (resource === undefined || request.resource === resource) &&
    (name === undefined || request.name === name);
}

/** Writes to a status. */
export function statusOf(resource: string, name?: string): Matcher {
  const matches = writesTo(resource, name);
  return (request) => matches(request) && request.subresource === 'status';
}
