import { beforeAll, expect, test } from 'vitest';
import type { PolicyRule } from '../../src/install/rules.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { eventually, installCrd, services } from '../support/cluster.js';
import { startController } from '../support/operator.js';
import type { RunningController } from '../support/operator.js';
import { requestsFromNowOn, summary } from '../support/requests.js';
import { Subject } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';

/** What is seen of each sort of right that is missing: the audit log, and a user or an admin. */
const user = 'operator-69';
const cluster = openCluster();
const web = { size: 0, image: 'example.com/web:1', ports: [{ port: 80 }] };
const refusedSpec = { ...web, ports: [{ port: 80, nodePort: 1 }] };

beforeAll(() => installCrd(cluster, appService));

interface Missing {
  readonly verb: string;
  readonly resource: string;
  /** What leads to a request for which it is needed. */
  readonly act: (apps: Subject) => Promise<void>;
  /** What is told of it. */
  readonly told: (apps: Subject, controller: RunningController) => Promise<unknown>;
}

const nothing = (): Promise<void> => Promise.resolve();
const create = async (apps: Subject): Promise<void> => {
  await apps.create('web', web);
};
const ready = async (apps: Subject): Promise<void> => {
  await create(apps);
  await apps.ready('web');
};

/** As a condition whose message has these words. */
const inCondition =
  (words: string) =>
  async (apps: Subject): Promise<void> => {
    const ready = await apps.condition('web', { type: 'Ready', status: 'False', reason: 'Forbidden' });
    expect(ready.message).toContain(words);
    expect(ready.message).toContain('grant it by `reconstruct install --apply` with the options in use');
  };
/** As a line of the log that has these words. */
const inLog =
  (level: string, ...words: readonly string[]) =>
  async (_: Subject, controller: RunningController): Promise<void> => {
    await controller.logged(
      (line) => line.level === level && words.every((word) => JSON.stringify(line).includes(word)),
    );
  };

async function drift(apps: Subject): Promise<void> {
  await ready(apps);
  const place = apps.childPlace(services, 'web');
  for (let times = 0; times < 2; times++) {
    await cluster.merge(place, { metadata: { labels: { app: 'other' } } });
    await eventually(async () => {
      expect((await cluster.get(place)).metadata.labels).toMatchObject({ app: 'web' });
    });
  }
}

const cases: readonly Missing[] = [
  {
    ...{ verb: 'watch', resource: 'deployments', act: nothing },
    told: inLog('warn', 'cannot watch resource', 'deployments', 'grant it by `reconstruct install --apply`'),
  },
  { verb: 'create', resource: 'deployments', act: create, told: inCondition('deployments') },
  { verb: 'patch', resource: 'deployments', act: create, told: inCondition('deployments') },
  {
    ...{ verb: 'delete', resource: 'services', told: inCondition('services') },
    act: async (apps) => {
      await ready(apps);
      await apps.edit('web', { ...web, ports: [] });
    },
  },
  {
    ...{ verb: 'get', resource: 'appservices', told: inCondition('appservices') },
    act: async (apps) => {
      await ready(apps);
      await cluster.delete(apps.childPlace(services, 'web'));
    },
  },
  {
    ...{ verb: 'patch', resource: 'appservices/status', act: create },
    told: inLog('warn', 'Forbidden', 'appservices/status'),
  },
  { verb: 'update', resource: 'appservices/finalizers', act: create, told: inCondition('finalizers') },
  {
    ...{ verb: 'create', resource: 'events' },
    act: async (apps) => {
      await apps.create('web', refusedSpec);
    },
    told: inLog('debug', 'not sent', 'cannot create resource', 'events'),
  },
  {
    ...{ verb: 'patch', resource: 'events', act: drift },
    told: inLog('debug', 'not sent', 'cannot patch resource', 'events'),
  },
  ...['get', 'create', 'update'].map((verb) => ({
    ...{ verb, resource: 'leases', act: nothing },
    told: inLog('warn', 'failed to acquire or renew lease', `cannot ${verb} resource`),
  })),
];

test.for(cases)(
  'without the right to $verb $resource, that is reported',
  async ({ verb, resource, act, told }) => {
    const namespace = await cluster.makeNamespace('missing-right');
    const apps = new Subject(cluster, appService, namespace);
    const requests = await requestsFromNowOn(cluster, user);
    const since = performance.now();
    await using controller = await startController({
      ...{ cluster, user, kinds: [appService], namespaces: [namespace], electionNamespace: namespace },
      ...{ rights: (installed) => without(installed, verb, resource), awaitStart: false },
    });

    await act(apps);

    await told(apps, controller);
    // Roles can give no right on the CRD of the Gateway API, which may not be installed here.
    const refused = (await requests())
      .filter(({ code, objectRef }) => code === 403 && objectRef?.resource !== 'customresourcedefinitions')
      .map(summary);
    expect(refused.length).toBeGreaterThan(0);
    // Nobody is asked again and again for what he won't give. Only what passes as a rule, since admission may not know the
    // kind yet, is tried again with pauses from 5 ms on, each twice the last: two requests each.
    const passes = resource === 'appservices/finalizers';
    const most = passes ? 2 * Math.log2((performance.now() - since) / 5) + 4 : 15;
    expect(refused.length, refused.join('\n')).toBeLessThan(most);
  },
);

function without(rules: readonly PolicyRule[], verb: string, resource: string): PolicyRule[] {
  const left = rules.map((rule) => ({
    ...rule,
    verbs: rule.verbs.filter((each) => each !== verb || !rule.resources.includes(resource)),
  }));
  expect(left).not.toEqual(rules);
  return left.filter(({ verbs }) => verbs.length > 0);
}
