import type { AnyObject } from '../../../src/contract/object.js';
import { resourceType } from '../../../src/contract/resource.js';
import { collectionPath } from '../../../src/client/api.js';
import type { ApiRequest, ApiResponse, Transport } from '../../../src/client/transport.js';
import { failure } from '../../engine/support/builders.js';

const PREFIX = /^\/(?:api\/v1|apis\/[^/]+\/[^/]+)\/(?:namespaces\/[^/]+\/)?/;

type Intercept = (req: ApiRequest, server: StoredServer) => ApiResponse | undefined;

/** An API server that stores what it is given, judges versions, and knows selectors; a dry run stores nothing. */
export class StoredServer implements Transport {
  readonly host = 'api.test';
  readonly objects = new Map<string, AnyObject>();
  readonly requests: ApiRequest[] = [];
  /** Answers to lists, by plural. */
  readonly refused = new Map<string, ApiResponse>();
  /** It takes requests, and never answers. */
  silent = false;
  private version = 100;

  /** @param intercept answers requests itself */
  constructor(
    objects: readonly AnyObject[] = [],
    private readonly intercept: Intercept = () => undefined,
  ) {
    for (const object of objects) this.put(object);
  }

  put(object: AnyObject): AnyObject {
    const path = pathOf(object);
    const uid = this.objects.get(path)?.metadata.uid ?? object.metadata.uid ?? `uid-${++this.version}`;
    const stored = { ...object, metadata: { ...object.metadata, uid, resourceVersion: `${++this.version}` } };
    this.objects.set(path, stored);
    return stored;
  }

  async request(req: ApiRequest): Promise<ApiResponse> {
    this.requests.push(req);
    const { method, path, query, signal } = req;
    if (this.silent)
      return new Promise((_, reject) => {
        signal?.addEventListener('abort', () => {
          reject(signal.reason as Error);
        });
      });
    await Promise.resolve();
    const own = this.intercept(req, this);
    if (own) return own;
    const body = req.body as AnyObject;
    const known = this.objects.get(method === 'POST' ? pathOf(body) : path);
    const [plural = '', name] = path.replace(PREFIX, '').split('/');
    if (method === 'GET' && name === undefined) return this.refused.get(plural) ?? this.list(req, plural);
    if (method === 'GET' && known) return { status: 200, body: known };
    if (method === 'GET' || (method === 'PUT' && !known))
      return failure(404, 'NotFound', `${path} not found`);
    if (method === 'PUT' && known?.metadata.resourceVersion !== body.metadata.resourceVersion)
      return failure(409, 'Conflict', 'the object has been modified');
    const isDry = query?.dryRun === 'All';
    const answer = isDry ? { ...body, metadata: { uid: 'dry', ...body.metadata } } : this.put(body);
    return { status: known ? 200 : 201, body: answer };
  }

  stream = () => Promise.reject(new Error('nothing is watched'));
  close = () => Promise.resolve();

  private list({ path, query = {} }: ApiRequest, plural: string): ApiResponse {
    const [, namespace] = /\/namespaces\/([^/]+)\//.exec(path) ?? [];
    const selectors = query.labelSelector?.match(/(?:[^,(]|\([^)]*\))+/g) ?? [];
    const items = [...this.objects.values()].filter(
      ({ kind, apiVersion, metadata }) =>
        resourceType({ apiVersion, kind }).plural === plural &&
        (namespace === undefined || metadata.namespace === namespace) &&
        (!query.fieldSelector || query.fieldSelector === `metadata.name=${metadata.name}`) &&
        selectors.every((selector) => {
          const [, label = '', values] = /^([^ =]+)(?: in \(|=)?([^)]*)/.exec(selector) ?? [];
          const found = metadata.labels?.[label];
          return found !== undefined && (!values || values.split(',').includes(found));
        }),
    );
    return { status: 200, body: { metadata: { resourceVersion: '100' }, items } };
  }
}

/** Returns the path of an object. */
export function pathOf({ apiVersion, kind, metadata: { namespace, name } }: AnyObject): string {
  return `${collectionPath(resourceType({ apiVersion, kind }), namespace)}/${name}`;
}
