import { join } from 'node:path';
import { repoFolder } from '../../../sandbox/paths.js';
import { loadKinds } from '../../../src/cli/config.js';
import type { OwnedKind } from '../../../src/contract/kind.js';
import { resourceType } from '../../../src/contract/resource.js';

export const bundleConfig = join(repoFolder(), 'test/full/kinds/bundle.config.mjs');

export const secrets = resourceType({ apiVersion: 'v1', kind: 'Secret' });
export const jobs = resourceType({ apiVersion: 'batch/v1', kind: 'Job' });

/** The kind that renders what its spec holds. */
export async function loadBundle(): Promise<OwnedKind> {
  const [kind] = await loadKinds({ config: bundleConfig, builtIn: [], kinds: ['bundle'] });
  return kind as OwnedKind;
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
