import { expect, test } from 'vitest';
import { appService } from '../../src/kinds/app-service/kind.js';
import { loadKind } from '../support/bundle.js';
import { deployments, eventually, inBatches } from '../support/cluster.js';
import type { ProxiedRequest } from '../support/faults.js';
import type { LogLine, RunningController } from '../support/operator.js';
import { leaseIn, stoppedOf, Webs } from '../support/shops.js';
import { Scenario } from '../support/stages.js';

const two = await loadKind('test/support/kinds/next-version.config.mjs');
const COUNT = 200;
const AT_ONCE = 5;
const READY_SECONDS = 30;
const KILLED_AT = 10;
const names = Array.from({ length: COUNT }, (_, index) => `app-${String(index).padStart(3, '0')}`);
/** One in twenty. */
const fragile = names.filter((_, index) => index % 20 === 19);
const specOf = (name: string) => ({
  size: 1,
  image: fragile.includes(name) ? 'fragile' : 'web:1',
  ports: [{ port: 80 }],
});
const editedSpecOf = (name: string) => ({ ...specOf(name), envs: [{ name: 'TEXT', value: 'bye' }] });

const isWrite = ({ method, resource, query }: ProxiedRequest): boolean =>
  method !== 'GET' && ['appservices', 'deployments', 'services'].includes(resource) && !query.has('dryRun');
const leads = ({ msg }: LogLine): boolean => msg === 'became leader';

/** Two processes of one build that compete for the lease, of which the one that leads is ended again and again. */
class Rivals {
  readonly all: RunningController[] = [];
  kills = 0;
  handOvers = 0;
  private readonly living = new Set<RunningController>();
  private ending: Promise<void> | undefined;

  constructor(private readonly scenario: Scenario) {}

  async start(): Promise<void> {
    const controller = await this.scenario.startController({
      ...{ kind: two, electionNamespace: this.scenario.user, awaitStart: false },
      args: ['--on-upgrade', String(AT_ONCE), '--ready-within', String(READY_SECONDS)],
    });
    this.all.push(controller);
    this.living.add(controller);
  }

  /** Ends the leader at every tenth write; the fifth time, it hands over. Returns how to end that. */
  endAtWrites(): () => Promise<void> {
    let writes = 0;
    const rule = this.scenario.proxy.on(isWrite, (_exchange, next) => {
      next();
      if (this.ending || ++writes % KILLED_AT !== 0) return;
      const isHandOver = this.kills === 5 && this.handOvers === 0;
      this.ending = (isHandOver ? this.handOver() : this.kill()).finally(() => (this.ending = undefined));
    });
    return async () => {
      rule.remove();
      await this.ending;
    };
  }

  /** Kills the leader, and starts another process behind the one that waits. */
  async kill(): Promise<void> {
    const leader = this.leader();
    this.kills++;
    await leader.kill();
    this.living.delete(leader);
    // That a lease runs out takes 15 s each time, and has a test of its own.
    const lease = leaseIn(this.scenario.user);
    await this.scenario.cluster.merge(lease, { spec: { holderIdentity: '' } });
    await this.start();
  }

  async stop(): Promise<void> {
    for (const controller of this.living) expect(await controller.stop()).toBe(0);
  }

  private async handOver(): Promise<void> {
    const leader = this.leader();
    this.handOvers++;
    expect(await leader.stop()).toBe(0);
    this.living.delete(leader);
    await this.start();
  }

  private leader(): RunningController {
    return [...this.living].find(({ log }) => log.some(leads))!;
  }
}

test('an upgrade of 200 goes on over kills, stops at what it breaks, and goes back no further than it came', async () => {
  await using scenario = await Scenario.prepare({ purpose: 'upgraded' });
  const { subject, cluster, namespace } = scenario;
  const startedAt = Date.now();
  const report = (what: string): void => {
    process.stdout.write(`Upgrade: ${((Date.now() - startedAt) / 1000).toFixed(0)} s: ${what}\n`);
  };
  const withReason = async (reason: string): Promise<string[]> => {
    const all = await cluster.list(appService.type, namespace);
    const conditions = all.map(({ metadata, status }) => ({
      name: metadata.name,
      conditions: (status as { conditions: { type: string; status: string; reason: string }[] }).conditions,
    }));
    return conditions
      .filter((cr) => cr.conditions.some((one) => one.type === 'UpdatePending' && one.reason === reason))
      .map(({ name }) => name)
      .sort();
  };

  // GIVEN 200 AppServices of the first version
  const first = await scenario.startController();
  await inBatches(names, (name) => subject.create(name, specOf(name)));
  await eventually(
    async () => {
      expect(await cluster.list(deployments, namespace)).toHaveLength(COUNT);
    },
    { deadlineMilliseconds: 120_000 },
  );
  await using webs = await Webs.watch(
    cluster,
    namespace,
    COUNT,
    ({ spec }) => spec.template.spec.containers[0]!.imagePullPolicy === 'Always',
  );
  await eventually(
    () => {
      expect(webs.unready()).toEqual([]);
    },
    { deadlineMilliseconds: 180_000 },
  );
  await scenario.settled();
  expect(await first.stop()).toBe(0);
  webs.mostUnready = 0;
  report(`${COUNT} are ready under version 1`);

  // WHEN the second comes, and its leader is ended at every tenth write
  const rivals = new Rivals(scenario);
  await rivals.start();
  await rivals.start();
  const isOver = rivals.endAtWrites();
  await eventually(
    () => {
      expect(webs.ofNext().length).toBeGreaterThan(5);
    },
    { deadlineMilliseconds: 240_000 },
  );
  // AND a user edits one that is held
  const [edited, late] = ['app-150', 'app-151'] as const;
  webs.edited.add(edited).add(late);
  await subject.edit(edited, editedSpecOf(edited));

  // THEN it stops at the first that is broken, and says which and why
  const annotation = async (): Promise<string | undefined> =>
    (await cluster.get(leaseIn(scenario.user))).metadata.annotations?.[stoppedOf(appService)];
  await eventually(
    async () => {
      expect(await annotation()).toBeDefined();
    },
    { deadlineMilliseconds: 300_000 },
  );
  await isOver();
  // A leader that is ended after ten writes may not come to it.
  await eventually(() => {
    expect(webs.ofNext()).toContain(edited);
  });
  const [, build, why, culprit = ''] =
    /^([0-9a-f]{8}) stopped (AppService [^ ]*\/(app-\d+) was ready before, and isn't 30 s after its update: .+)/s.exec(
      (await annotation())!,
    )!;
  expect(fragile).toContain(culprit);
  await eventually(async () => {
    const stops = (await subject.events(culprit)).filter(({ reason }) => reason === 'RolloutStopped');
    expect(stops.map(({ note }) => note)).toContain(why);
  });
  expect(rivals.all.flatMap(({ log }) => log).map(({ msg }) => msg)).toContain(`rollout stopped: ${why}`);
  const stoppedAt = webs.ofNext();
  report(
    `stopped at ${culprit} with ${stoppedAt.length} updated; ${rivals.kills} kills, ${rivals.handOvers} hand-over; at most ${webs.mostUnready} weren't ready: ${why}`,
  );
  expect(rivals.kills).toBeGreaterThanOrEqual(10);
  expect(rivals.handOvers).toBe(1);

  // AND edits go through, and nothing else is updated, also by another leader
  await rivals.kill();
  await subject.edit(late, editedSpecOf(late));
  const updated = [...stoppedAt, late].sort();
  await eventually(
    async () => {
      expect(webs.ofNext()).toEqual(updated);
      expect(webs.unready().filter((name) => !fragile.includes(name))).toEqual([]);
      const held = await withReason('RollsPods');
      expect(held).toEqual(names.filter((name) => !updated.includes(name)));
    },
    { deadlineMilliseconds: 60_000 },
  );
  await scenario.settled();
  expect(webs.ofNext()).toEqual(updated);
  expect(webs.mostUnready).toBeLessThanOrEqual(AT_ONCE);
  expect(webs.mostUnready).toBeGreaterThan(0);
  expect(build).toBeDefined();
  await rivals.stop();

  // WHEN the first is back and holds
  const before = webs.generations();
  const holding = await scenario.startController({ args: ['--on-upgrade', 'hold'] });
  await eventually(
    async () => {
      expect(await withReason('RollsPods')).toEqual(updated);
    },
    { deadlineMilliseconds: 60_000 },
  );
  await scenario.settled();
  // THEN it rolls nothing
  expect(webs.generations()).toEqual(before);
  expect(await holding.stop()).toBe(0);
  report('version 1 is back, and holds');

  // WHEN it applies, THEN what had been updated goes back, and nothing else
  await scenario.startController({ args: ['--on-upgrade', 'apply'] });
  await eventually(
    () => {
      expect(webs.ofNext()).toEqual([]);
      expect(webs.unready()).toEqual([]);
    },
    { deadlineMilliseconds: 120_000 },
  );
  await scenario.settled();
  const after = webs.generations();
  expect(names.filter((name) => after[name] !== before[name])).toEqual(updated);
  expect(await withReason('RollsPods')).toEqual([]);
  scenario.logsNoError();
  report('what had been updated has gone back');
});
