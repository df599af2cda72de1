import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { repoFolder } from '../../../sandbox/paths.js';
import type { CustomResourceDefinition } from '../../../src/contract/crd.js';
import { definitionName } from '../../../src/contract/resource.js';
import { prometheusRuleType, serviceMonitorType } from '../../../src/install/cluster.js';
import { goModuleFolder } from './go-module.js';

/** The folder whose go.mod pins the release. */
const PIN = join(repoFolder(), 'test/full/support/prometheus-operator');

/** The types of the Prometheus operator that are installed by `--monitoring`, as its release defines them. */
export async function monitoringCrds(): Promise<CustomResourceDefinition[]> {
  const folder = await goModuleFolder('github.com/prometheus-operator/prometheus-operator', PIN);
  return Promise.all(
    [serviceMonitorType, prometheusRuleType].map(async (type) => {
      const file = `monitoring.coreos.com_${type.plural}.yaml`;
      const text = await readFile(join(folder, 'example/prometheus-operator-crd', file), 'utf8');
      const crd = parse(text) as CustomResourceDefinition;
      if (crd.metadata.name !== definitionName(type)) throw new Error(`${file} defines ${crd.metadata.name}`);
      return crd;
    }),
  );
}
