import { expect, it } from 'vitest';
import type { AnyObject } from '../../../src/contract/object.js';
import { applyInstallation } from '../../../src/install/apply.js';
import { availableMonitoring } from '../../../src/install/installable.js';
import { MONITORING_PARTS } from '../../../src/install/props.js';
import type { InstallProps } from '../../../src/install/props.js';
import { uninstall } from '../../../src/install/uninstall.js';
import { jobWatcher } from '../../../src/kinds/job-watcher/kind.js';
import { MemoryCluster } from '../memory-cluster.js';

const definition = (name: string): AnyObject => ({
  ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', metadata: { name } },
});
const monitors = definition('servicemonitors.monitoring.coreos.com');
const rules = definition('prometheusrules.monitoring.coreos.com');
const monitoring = { parts: MONITORING_PARTS };
const kinds = [jobWatcher];
const props: InstallProps = { namespace: 'ops', image: 'example.com/reconstruct:1', kinds, replicas: 2 };
const nothing = (): void => undefined;

it.each([
  ['all', [monitors, rules], ['service-monitor', 'rules', 'dashboard'], []],
  ['what there is', [rules], ['rules', 'dashboard'], ['servicemonitors']],
  ['the dashboard', [], ['dashboard'], ['servicemonitors', 'prometheusrules']],
])('takes %s, and tells what the cluster lacks', async (_, present, taken, lacking) => {
  const told: string[] = [];
  const available = await availableMonitoring(monitoring, new MemoryCluster(present), (line) =>
    told.push(line),
  );
  expect(available.parts).toEqual(taken);
  expect(told).toEqual(
    lacking.map(
      (plural) =>
        expect.stringMatching(
          new RegExp(
            `^There is no CustomResourceDefinition ${plural}\\.monitoring\\.coreos\\.com, so .*: install the Prometheus operator`,
          ),
        ) as string,
    ),
  );
});

it('goes with the installation, and with one that does not want it any more', async () => {
  const cluster = new MemoryCluster([monitors, rules]);
  const names = (): string[] =>
    cluster.all
      .filter(
        ({ kind, metadata: { name } }) =>
          /^(ServiceMonitor|PrometheusRule)$/.test(kind) || name.endsWith('dashboard'),
      )
      .map(({ kind }) => kind)
      .sort();
  await applyInstallation({ ...props, monitoring }, cluster, nothing);
  // Somebody else's, with our labels.
  const ours = cluster.all.find(({ kind }) => kind === 'PrometheusRule')!;
  cluster.put({ ...ours, metadata: { ...ours.metadata, name: 'copied', uid: 'other' } });
  expect(names()).toEqual(['ConfigMap', 'PrometheusRule', 'PrometheusRule', 'ServiceMonitor']);
  await applyInstallation({ ...props, monitoring: { parts: ['rules'] } }, cluster, nothing, {
    replace: true,
  });
  expect(names()).toEqual(['PrometheusRule', 'PrometheusRule']);
  await applyInstallation({ ...props, monitoring }, cluster, nothing);
  await uninstall({ namespace: 'ops', kinds, purge: false, dryRun: false }, cluster, nothing);
  expect(names()).toEqual(['PrometheusRule']);
});
