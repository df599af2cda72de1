import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { stringify } from 'yaml';
import type { Condition } from '../../src/contract/conditions.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import type { AppServicePolicy } from '../../src/kinds/app-service/policy.js';
import { deployments } from '../support/cluster.js';
import { command } from '../support/commands.js';
import { MountedFile } from '../support/mounted-file.js';
import { startController } from '../support/operator.js';
import type { RunningController } from '../support/operator.js';
import { requestsFromNowOn, settled, summary, writes } from '../support/requests.js';
import { asked, Subject } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';

const user = 'operator-40';
const cluster = openCluster();
const mounted = new MountedFile('policy.yaml');
const { folder, path: file } = mounted;
let apps: Subject;
let controller: RunningController;

const STRICT: AppServicePolicy = {
  securityProfile: 'Baseline',
  serviceTypes: ['ClusterIP'],
  imageRegistries: ['registry.example.com/shop'],
  gateways: ['infra/public'],
  hostnames: ['a.example.com'],
  maxSize: 2,
  features: ['securityProfile', 'service', 'autoscaling', 'route'],
};

/** What the strict policy allows. */
const allowed = {
  ...{ size: 1, image: 'registry.example.com/shop/web:1', securityProfile: 'Baseline' },
  ...{ ports: [{ port: 80 }], service: { type: 'ClusterIP' } },
};

const policyOf = (policy: AppServicePolicy): string => stringify({ appservice: policy });

beforeAll(async () => {
  mounted.put(policyOf(STRICT));
  apps = await Subject.make(cluster, appService, 'policy');
  controller = await startController({
    ...{ cluster, user, kinds: [appService], namespaces: [apps.namespace], args: ['--policy', file] },
  });
});
afterAll(() => {
  mounted.remove();
});

test.each([
  [
    'profile',
    { securityProfile: undefined },
    "spec.securityProfile: is not set, which is less than the policy's securityProfile, Baseline; set it to Baseline",
  ],
  [
    'type-by-default',
    { service: undefined },
    'spec.service.type: "NodePort", the default, is not in the policy\'s serviceTypes; give one of ClusterIP',
  ],
  [
    'registry',
    { image: 'nginx:1.27' },
    'spec.image: "nginx:1.27" comes from docker.io/library/nginx, which is not in the policy\'s imageRegistries; take one from registry.example.com/shop',
  ],
  [
    'gateway',
    { route: { hostnames: ['a.example.com'], parentRefs: [{ name: 'private', namespace: 'infra' }] } },
    'spec.route.parentRefs[0]: "infra/private" is not in the policy\'s gateways; give one of infra/public',
  ],
])('what a policy refuses is reported as synth reports it: %s', async (name, more, message) => {
  const spec = { ...allowed, ...more };
  await apps.create(name, spec);

  const { apiVersion, kind } = appService.type;
  const source = join(folder, `${name}.yaml`);
  writeFileSync(source, stringify({ apiVersion, kind, metadata: { name, namespace: apps.namespace }, spec }));
  const refused = await command('synth', source, '--policy', file);

  expect(refused).toMatchObject({ code: 2, stdout: '' });
  expect(refused.stderr).toMatch(/: document 1, line \d+: spec\./);
  expect(refused.stderr).toContain(`: ${message}\n`);
  for (const [type, status] of Object.entries({ Accepted: 'False', Ready: 'False', Stalled: 'True' }))
    await apps.condition(name, { type, status, reason: 'PolicyDenied', message } as Condition);
  expect(await cluster.find(apps.childPlace(deployments, name))).toBeUndefined();
});

test('and what it allows is made', async () => {
  const route = { hostnames: ['a.example.com'], parentRefs: [{ name: 'public', namespace: 'infra' }] };
  await apps.create('allowed', { ...allowed, size: 2 });
  await apps.create('routed', { ...allowed, route });

  await apps.ready('allowed');
  await apps.asRendered('routed');
});

test('a policy that changes is followed: what it denies then is left as it is, and heals when it is allowed again', async () => {
  // GIVEN
  mounted.put(policyOf({ maxSize: 5 }));
  await inForce(1);
  await apps.create('large', { ...allowed, size: 4 });
  await apps.create('small', { ...allowed, size: 1 });
  await apps.ready('large');
  await apps.ready('small');
  await settled(cluster, user);
  const before = await apps.objects(deployments);
  const requests = await requestsFromNowOn(cluster, user);

  // WHEN
  mounted.put(policyOf({ maxSize: 2 }));

  // THEN
  const refused = {
    reason: 'PolicyDenied',
    message: "spec.size: 4 is more than the policy's maxSize, 2; give 2 or less",
  };
  await apps.condition('large', { type: 'Stalled', status: 'True', ...refused });
  await inForce(2);
  await settled(cluster, user);
  expect((await apps.objects(deployments)).map(asked)).toEqual(before.map(asked));
  const sent = writes(await requests()).map(summary);
  expect(sent.filter((line) => line.includes('/small'))).toEqual([]);
  expect(sent.filter((line) => !/^patch appservices\/status |^(create|patch) events /.test(line))).toEqual(
    [],
  );

  // WHEN
  mounted.put('appservice: { maxSize: many }');

  // THEN
  const line = await controller.logged(({ msg }) => msg.startsWith('changed policy refused'));
  expect(line).toMatchObject({
    level: 'error',
    errors: [expect.stringContaining('appservice.maxSize: "many"')],
  });
  await apps.condition('large', { type: 'Stalled', status: 'True', ...refused });

  // WHEN
  mounted.put(policyOf({ maxSize: 4 }));

  // THEN
  await apps.ready('large');
  expect((await apps.get('large')).status?.conditions?.map(({ type }) => type)).not.toContain('Accepted');
  await apps.ready('small');
});

/** Waits until so many changes have been taken up. */
async function inForce(times: number): Promise<void> {
  let from = 0;
  for (let n = 0; n < times; n++) {
    const line = await controller.logged(({ msg }) => msg === 'policy changed and is in force', from);
    expect(line).toMatchObject({
      kinds: ['appservice'],
      digest: expect.stringMatching(/^[0-9a-f]{12}$/) as string,
    });
    from = controller.log.indexOf(line) + 1;
  }
}
