import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { AdminFiles, Kind, Upgrades } from '../contract/kind.js';
import { rolloutStopped } from '../contract/names.js';
import type { Manager } from '../engine/loop/manager.js';
import { hold } from '../engine/preview/hold.js';
import { canonicalJson } from '../values/json.js';
import type { Logger } from '../telemetry/logger.js';
import { CliError } from './output.js';

/** Treatment of updates that another build brings: of the kinds that are named, or of all. */
export type OnUpgrade =
  | { readonly mode: 'apply' }
  | { readonly mode: 'hold'; readonly kinds?: readonly string[] }
  | { readonly mode: 'rollout'; readonly atOnce: number };

/** Data that a module may read beside itself, such as a chart. */
const DATA = /\.(?:json|ya?ml|toml|tpl|txt)$/;

/**
 * Follows which modules are loaded from now on.
 * @returns a function that ends this, and returns a hash of their texts, of the data beside them, and of this command
 */
export function followModules(): () => string {
  const files = new Set<string>();
  const folders = new Set<string>();
  const hooks = registerHooks({
    load: (url, context, next) => {
      const loaded = next(url, context);
      if (!url.startsWith('file:')) return loaded;
      const path = fileURLToPath(url);
      files.add(path);
      if (!path.includes('node_modules')) folders.add(dirname(path));
      return loaded;
    },
  });
  return () => {
    hooks.deregister();
    const add = (folder: string, names: RegExp): void => {
      for (const name of readdirSync(folder)) if (names.test(name)) files.add(join(folder, name));
    };
    add(import.meta.dirname, /\.m?js$/);
    for (const folder of folders) add(folder, DATA);
    const hashes = [...files].map((file) => hashOf(readFileSync(file)));
    return hashOf([...new Set(hashes)].sort().join());
  };
}

function hashOf(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}

export interface UpgradesProps {
  readonly onUpgrade: OnUpgrade;
  /** Hash of the code and the data of the kinds. */
  readonly digest: string;
  readonly kinds: readonly Kind[];
  readonly inForce: { readonly current: AdminFiles };
  /** Time in which a custom resource has to be ready again, in seconds. */
  readonly readySeconds: number;
  readonly lease: () => Pick<Manager, 'term' | 'annotation' | 'annotate'>;
  readonly log: Logger;
}

/** Maximum number of characters of the reason that the lease keeps. */
const MAX_WHY = 1_000;

/** Returns how updates are treated. @throws CliError for a kind that there isn't, or whose updates can't be held */
export function upgradesOf(props: UpgradesProps): Upgrades {
  const { onUpgrade, digest, kinds, inForce, readySeconds, lease, log } = props;
  // What is only set on objects of others has no record of its own.
  const isHoldable = ({ rendering }: Kind): boolean =>
    'each' in rendering && rendering.each.children.length > 0;
  const holdable = kinds.filter(isHoldable).map(({ name }) => name);
  const named = onUpgrade.mode === 'hold' ? onUpgrade.kinds : undefined;
  for (const name of named ?? [])
    if (!holdable.includes(name)) {
      const isKnown = kinds.some((kind) => kind.name === name);
      const why = isKnown
        ? `custom resources of ${name} have no objects of their own that could be held`
        : `there is no kind ${name}`;
      throw new CliError(`--on-upgrade: ${why}; name some of ${holdable.join(', ')}`);
    }
  const held = new Set(named ?? holdable);
  const builds = new Map<string, { readonly files: AdminFiles; readonly build: string }>();
  return {
    build: (kind) => {
      if (!held.has(kind)) return undefined;
      const files = inForce.current;
      const known = builds.get(kind);
      if (known?.files === files) return known.build;
      const settings = canonicalJson(files.settings?.[kind] ?? null);
      const build = hashOf([kind, digest, settings].join(' ')).slice(0, 8);
      builds.set(kind, { files, build });
      return build;
    },
    term: () => lease().term,
    handler: hold,
    ...(onUpgrade.mode === 'rollout' && {
      rollout: {
        ...{ atOnce: onUpgrade.atOnce, readyMilliseconds: readySeconds * 1_000 },
        stateOf: (kind, build) => {
          const [of, what, at = ''] = lease().annotation(rolloutStopped(kind))?.split(' ') ?? [];
          if (of !== build) return undefined;
          return what === 'resumed' ? { isStopped: false, resumedAt: Date.parse(at) } : { isStopped: true };
        },
        stop: (kind, build, why) => {
          log.warn({ kind, build }, `rollout stopped: ${why}`);
          lease().annotate(rolloutStopped(kind), `${build} stopped ${why.slice(0, MAX_WHY)}`);
        },
      },
    }),
  };
}
