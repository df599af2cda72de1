import { expect, inject, test } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import { startSandbox } from '../../sandbox/control-plane.js';
import type { Kind } from '../../src/contract/kind.js';
import type { AnyObject } from '../../src/contract/object.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import type { AppServiceSpec } from '../../src/kinds/app-service/spec.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import { streamIngress } from '../../src/kinds/stream-ingress/kind.js';
import { sweep } from '../../src/testing/conformance.js';
import type { ConformanceOptions } from '../../src/testing/conformance.js';
import { CHECK_NAMES, formatReport } from '../../src/testing/report.js';
import type { CheckResult } from '../../src/testing/report.js';
import type { MakeSurroundings } from '../../src/testing/tested-kind.js';
import { loadKind } from '../support/bundle.js';
import { exampleDocument } from '../support/examples.js';
import { httpRouteCrd } from '../support/http-route-crd.js';
import { jobWatcherSamples, withJobs } from './support/job-watcher-swept.js';
import { keepsItsPort, streamIngressSamples, withIngressNginx } from './support/stream-ingress-swept.js';

const USES_NOTHING_ELSE = {
  observed: 'it reads nothing of its children',
  memory: 'it reads nothing of its own status',
  order: 'nothing waits for anything',
  values: 'no values are generated for it',
  deletion: 'its objects go by their owner references alone',
  fields: 'no field stays as it was created, or is one of an object of others',
  upgrade: 'no former version of it is given',
};
const REFERS_TO_NOTHING = { references: 'it refers to nothing', ...USES_NOTHING_ELSE };
const TOGETHER_REASON = 'it renders its custom resources together';
const TOGETHER = {
  ...{ ...REFERS_TO_NOTHING, control: TOGETHER_REASON },
  ...{ adoption: TOGETHER_REASON, deletion: TOGETHER_REASON },
};

/** Sweeps a kind, for which all checks hold but those that don't apply. Returns the result of a check. */
async function swept(
  kind: Kind,
  samples: readonly AnyObject[],
  options: ConformanceOptions,
  notApplicable: Readonly<Record<string, string>> = REFERS_TO_NOTHING,
): Promise<(name: string) => CheckResult | undefined> {
  const report = await sweep(kind, samples, { seed: 7, ...options });

  console.log(formatReport(report));
  const verdicts = report.checks.map(({ check, held, notApplicable: why }) => [
    check,
    why ?? (held ? 'held' : 'failed'),
  ]);
  expect(Object.fromEntries(verdicts), formatReport(report)).toEqual({
    ...Object.fromEntries(CHECK_NAMES.map((check) => [check, 'held'])),
    ...notApplicable,
  });
  return (name) => report.checks.find(({ check }) => check === name);
}

/** The specs of some examples in one, so that two can have it and their pods are there at once. */
function together(...names: readonly string[]): object {
  const specs = names.map((name) => exampleDocument(`appservice/${name}.yaml`).spec as AppServiceSpec);
  const { ports, files, ...spec } = Object.assign({}, ...specs) as AppServiceSpec;
  const { minReadySeconds: _, serviceAccountName: _account, ...rest } = spec;
  return {
    ...rest,
    ...(ports && { ports: ports.map(({ nodePort, ...port }) => port) }),
    ...(files && { files: files.filter((file) => !file.persistentVolumeClaim) }),
  };
}

/** Custom resources that lead to everything that an AppService makes, and nearly all of what its fields can be. */
const appServiceSamples: readonly AnyObject[] = [
  together('probes', 'rollout', 'envs', 'resources', 'autoscaling', 'route'),
  together('recreate', 'files', 'command', 'security', 'ports'),
  together('topology-spread', 'autoscaling-metrics', 'probes-grpc', 'service'),
].map((spec, index) => ({
  ...{ apiVersion: 'kosmos.io/v1', kind: 'AppService', metadata: { name: `sample-${index}` }, spec },
}));

test('AppService passes its sweep, with all that it can make', async () => {
  // Of its own, since the other scenarios have no Gateway API.
  await using sandbox = await startSandbox();
  for (const crd of [httpRouteCrd, appService.crd])
    await sandbox.kubectl(['apply', '--server-side', '-f', '-'], { stdin: JSON.stringify(crd) });
  // Its garbage collector would learn of them half a minute later.
  await sandbox.restartControllerManager();

  const result = await swept(appService, appServiceSamples, { sandbox });

  // Of the three samples: two with a Deployment, Service, autoscaler and budget, one of them with a route, and one without.
  expect(result('drift')?.tried).toMatch(/10 objects removed$/);
  expect(result('events')?.tried).toMatch(/^6 watches/);
  // Of 505; what is left either needs more edits, or values that go together.
  expect(result('walk')?.notDone?.length).toBeLessThan(100);
});

test('JobWatcher passes its sweep, over Jobs that belong to others', async () => {
  const result = await swept(
    jobWatcher,
    jobWatcherSamples,
    // What a run may delete depends on what is due by the time of it.
    { sandbox: openSandbox(inject('sandbox')), surroundings: withJobs, notWalked: ['limits'] },
    {
      rendering: 'it renders no objects',
      ownership: 'it makes no objects',
      drift: 'it makes no objects',
      ...TOGETHER,
    },
  );

  expect(result('walk')?.tried).toMatch(/left out: limits; .*others' objects: \d{2,} deleted, \d{2,} left$/);
});

test('StreamIngress passes its sweep, in which an ingress-nginx is shared with others', async () => {
  const options = {
    ...{ sandbox: openSandbox(inject('sandbox')), surroundings: withIngressNginx },
    keepsEarlier: keepsItsPort,
  };
  const result = await swept(streamIngress, streamIngressSamples, options, TOGETHER);

  expect(result('ownership')?.tried).toMatch(/8 shared objects/);
  expect(result('drift')?.tried).toMatch(/^12 fields changed, .* 8 objects removed$/);
  expect(result('walk')?.tried).toMatch(/can't be changed: protocol, listen;/);
});

test('a kind with references passes its sweep, whatever happens to what it refers to', async () => {
  const { kind } = await loadKind('test/support/kinds/site.config.mjs');
  const type = { apiVersion: 'test.example.com/v1', kind: 'Site' };
  const samples = [
    { ...type, metadata: { name: 'a' }, spec: { secret: 'tls', theme: 'dark', tier: 'web' } },
    { ...type, metadata: { name: 'b' }, spec: { secret: 'tls' } },
  ];
  const surroundings: MakeSurroundings = ({ namespace }) => ({
    objects: [
      {
        ...{ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'tls', namespace } },
        ...{ type: 'Opaque', data: { key: 'b25l' } },
      },
      {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'dark', namespace },
        data: { color: 'black' },
      },
    ],
  });
  const waits = ({ secret }: Readonly<Record<string, unknown>>): boolean => secret !== 'tls';

  const result = await swept(
    kind,
    samples,
    { sandbox: openSandbox(inject('sandbox')), surroundings, waits, notWalked: ['themeNamespace'] },
    USES_NOTHING_ELSE,
  );

  expect(result('references')?.tried).toMatch(/^4 changes of 2 objects, /);
});
