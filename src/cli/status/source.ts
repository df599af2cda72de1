import type { AnyObject } from '../../contract/object.js';
import type { Api, Scope } from '../../engine/api.js';

/** Where objects come from. */
export interface Source {
  /**
   * Those of a type that match; of Secrets, the metadata alone.
   * @throws ApiError where they may not be read, or the type isn't served
   */
  list(scope: Scope): Promise<readonly AnyObject[]>;
}

const NEVER = new AbortController().signal;

/** Asks the API server, for each scope once. */
export class ListedSource implements Source {
  private readonly asked = new Map<string, Promise<readonly AnyObject[]>>();

  constructor(private readonly api: Api) {}

  list(scope: Scope): Promise<readonly AnyObject[]> {
    const id = idOf(scope);
    const asked = this.asked.get(id) ?? listAll(this.api, scope);
    this.asked.set(id, asked);
    return asked;
  }
}

/** All pages of a list. */
export async function listAll(
  api: Api,
  scope: Scope,
  signal: AbortSignal = NEVER,
): Promise<readonly AnyObject[]> {
  const items: AnyObject[] = [];
  let next: string | undefined;
  do {
    const page = await api.list({ ...scope, metadataOnly: isSecret(scope) }, next, signal);
    items.push(...page.items);
    next = page.continueToken;
  } while (next !== undefined);
  return items;
}

export function isSecret({ type }: Scope): boolean {
  return type.apiVersion === 'v1' && type.kind === 'Secret';
}

export function idOf({ type, namespace = '', selector = '', name = '' }: Scope): string {
  return [type.apiVersion, type.plural, namespace, selector, name].join(' ');
}
