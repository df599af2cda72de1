import { join } from 'node:path';
import { repoFolder } from '../../sandbox/paths.js';
import { loadKinds } from '../../src/cli/config.js';
import type { OwnedKind } from '../../src/contract/kind.js';

/** A kind of a configuration, as a controller is started with it. */
export interface ConfiguredKind {
  readonly kind: OwnedKind;
  /** @default - the kind is built in */
  readonly config?: string;
}

/** Loads the first kind of a configuration in the repository. */
export async function loadKind(path: string): Promise<Required<ConfiguredKind>> {
  const config = join(repoFolder(), path);
  const [kind] = await loadKinds({ config, builtIn: [] });
  return { kind: kind as OwnedKind, config };
}

/** Loads the kind that renders what its spec holds; after an upgrade, Secrets are former children. */
export function loadBundle({ upgraded = false } = {}): Promise<Required<ConfiguredKind>> {
  return loadKind(`test/support/kinds/bundle${upgraded ? '-upgraded' : ''}.config.mjs`);
}

type Json = Readonly<Record<string, unknown>>;

export function configMap(name: string, data: Json): object {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data };
}

export function service(name: string, ports: readonly Json[]): object {
  return { apiVersion: 'v1', kind: 'Service', metadata: { name }, spec: { selector: { app: name }, ports } };
}

/** A Deployment without pods. */
export function deployment(name: string, containers: readonly Json[], labels: Json = {}): object {
  return {
    ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name, labels } },
    spec: {
      replicas: 0,
      selector: { matchLabels: { app: name } },
      template: { metadata: { labels: { app: name } }, spec: { containers } },
    },
  };
}
