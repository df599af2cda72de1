import { join } from 'node:path';
import { repoFolder } from '../../../sandbox/paths.js';
import { loadKinds } from '../../../src/cli/config.js';
import type { OwnedKind } from '../../../src/contract/kind.js';
import { appService } from '../../../src/kinds/app-service/kind.js';

/** A kind, and the configuration that brings it to the controller. */
export interface ScenarioKind {
  readonly kind: OwnedKind;
  /** @default - the kind is built in */
  readonly config?: string;
}

export const appServices: ScenarioKind = { kind: appService };

/** As small as an AppService gets: nothing about it changes by itself. */
export const small = { size: 0, image: 'example.com/web:1', ports: [{ port: 80 }] };

async function parcels(file: string): Promise<ScenarioKind> {
  const config = join(repoFolder(), 'test/scenarios/kinds', file);
  const [kind] = await loadKinds({ config, builtIn: [] });
  return { kind: kind as OwnedKind, config };
}

/** A kind with any number of ConfigMaps, and a Secret. */
export const parcel = await parcels('parcel.config.mjs');
/** The same after an upgrade: Secrets are former children. */
export const upgradedParcel = await parcels('parcel-upgraded.config.mjs');
