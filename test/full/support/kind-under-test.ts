import { join } from 'node:path';
import { repoFolder } from '../../../sandbox/paths.js';
import { loadKinds } from '../../../src/cli/config.js';
import type { OwnedKind } from '../../../src/contract/kind.js';
import { appService } from '../../../src/kinds/app-service/kind.js';
import { resourceType } from '../../../src/contract/resource.js';
import type { ResourceType } from '../../../src/contract/resource.js';
import { anyRoute } from './any-route.js';
import { appServiceFields } from './app-service-fields.js';
import { barredFields } from './app-service-options.js';
import { configMaps, deployments, services } from './cluster.js';
import type { FieldEdit } from './field-edit.js';

/** What the tests that every kind passes have to know of one. */
export interface KindUnderTest {
  readonly kind: OwnedKind;
  /** @default - the kind is built in */
  readonly config?: string;
  /** Further arguments of `reconstruct run`. @default - none */
  readonly args?: readonly string[];
  /** Renders a child of every type, and starts nothing that changes by itself. */
  readonly spec: object;
  /** The same without the child that is optional. */
  readonly specWithoutOptional: object;
  readonly optional: ResourceType;
  /** One edit by somebody else per child, of a field that is rendered. */
  readonly drifts: readonly { readonly child: ResourceType; readonly patch: object }[];
  /** Every field of the spec. */
  readonly fields: readonly FieldEdit[];
  /** Fields that the rules of the CRD refuse whatever their value. @default - none */
  readonly barredFields?: readonly string[];
  /** The controller may watch all namespaces: no other test has custom resources of the kind. */
  readonly clusterWide: boolean;
}

const withoutService = {
  ...{ size: 0, image: 'example.com/web:1', resources: { requests: { cpu: '100m' } } },
  ...{ autoscaling: { maxReplicas: 3, cpu: 50 }, disruption: {} },
};

function appServiceChild(kindName: string): ResourceType {
  return appService.children.find((type) => type.kind === kindName)!;
}

export const appServiceUnderTest: KindUnderTest = {
  kind: appService,
  args: anyRoute,
  spec: { ...withoutService, ports: [{ port: 80 }], route: { parentRefs: [{ name: 'edge' }] } },
  specWithoutOptional: withoutService,
  optional: services,
  drifts: [
    { child: deployments, patch: { spec: { template: { metadata: { labels: { app: 'other' } } } } } },
    { child: services, patch: { spec: { type: 'ClusterIP' } } },
    { child: appServiceChild('HorizontalPodAutoscaler'), patch: { spec: { maxReplicas: 9 } } },
    { child: appServiceChild('PodDisruptionBudget'), patch: { spec: { maxUnavailable: 9 } } },
    { child: appServiceChild('HTTPRoute'), patch: { spec: { parentRefs: [{ name: 'other' }] } } },
  ],
  ...{ fields: appServiceFields, barredFields },
  clusterWide: false,
};

const task = { schedule: '0 0 29 2 *', image: 'example.com/task:1' };

export async function scheduledTaskUnderTest(): Promise<KindUnderTest> {
  const config = join(repoFolder(), 'examples/scheduled-task/reconstruct.config.mjs');
  const [kind] = await loadKinds({ config, builtIn: [], kinds: ['scheduledtask'] });
  return {
    kind: kind as OwnedKind,
    config,
    spec: { ...task, script: 'true\n' },
    specWithoutOptional: task,
    optional: configMaps,
    drifts: [
      {
        child: resourceType({ apiVersion: 'batch/v1', kind: 'CronJob' }),
        patch: { spec: { schedule: '1 1 1 1 1' } },
      },
      { child: configMaps, patch: { data: { 'script.sh': 'false\n' } } },
    ],
    fields: [
      {
        path: 'schedule',
        without: task,
        set: { ...task, schedule: '1 0 29 2 *' },
        changed: { ...task, schedule: '2 0 29 2 *' },
      },
      {
        path: 'image',
        without: task,
        set: { ...task, image: 'example.com/task:2' },
        changed: { ...task, image: 'example.com/task:3' },
      },
      {
        path: 'script',
        without: task,
        set: { ...task, script: 'true\n' },
        changed: { ...task, script: 'false\n' },
      },
      {
        path: 'suspend',
        without: task,
        set: { ...task, suspend: true },
        changed: { ...task, suspend: false },
      },
      { path: 'keep', without: task, set: { ...task, keep: 1 }, changed: { ...task, keep: 0 } },
    ],
    clusterWide: true,
  };
}
