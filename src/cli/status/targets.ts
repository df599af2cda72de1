import type { Kind } from '../../contract/kind.js';
import { suggest } from '../../contract/suggest.js';
import { kindName } from '../../install/arguments.js';
import { CliError } from '../exit.js';

/** What has to be known of a kind to look at its custom resources: plain data, which another process may have loaded. */
export type SeenKind = Pick<Kind, 'name' | 'type' | 'crd'>;

/** Which custom resources are asked for. */
export interface Target {
  readonly kind: SeenKind;
  /** @default - all of the kind */
  readonly name?: string;
}

/**
 * Reads `KIND/NAME`, where the kind is named as `kubectl` takes it: by kind, plural, singular or short name, with or
 * without its group.
 * @throws CliError with exit code 2 where it can't be read, or there is no such kind
 */
export function targetOf(text: string, kinds: readonly Kind[]): Target {
  const [named = '', name, ...rest] = text.split('/');
  if (named === '' || name === undefined || name === '' || rest.length > 0)
    throw new CliError(`${text}: write KIND/NAME, as in ${kinds[0]?.name ?? 'appservice'}/web`, 2);
  const wanted = named.toLowerCase();
  const found = kinds.filter((kind) => namesOf(kind).includes(wanted));
  const [kind] = found;
  if (kind && found.length === 1) return { kind, name };
  const known = kinds.map(kindName).join(', ');
  if (kind) {
    const full = found.map((one) => `${kindName(one)}/${name}`).join(' or ');
    throw new CliError(`${text}: several kinds are called ${named}; write ${full}`, 2);
  }
  const near = suggest(
    named,
    kinds.flatMap((one) => namesOf(one).filter((each) => !each.includes('.'))),
  );
  throw new CliError(
    `${text}: there is no kind ${named}${near === undefined ? '' : `; did you mean ${near}?`}; the kinds are ${known}`,
    2,
  );
}

function namesOf({ crd: { spec } }: Kind): string[] {
  const { kind, plural, singular = kind, shortNames = [] } = spec.names;
  const names = [kind, plural, singular, ...shortNames].map((name) => name.toLowerCase());
  return names.flatMap((name) => [name, `${name}.${spec.group}`]);
}
