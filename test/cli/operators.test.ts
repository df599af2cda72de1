import { describe, expect, test, vi } from 'vitest';
import { operatorContext, operatorsFor, responsibleOperator } from '../../src/cli/operators.js';
import type { OperatorContextProps } from '../../src/cli/operators.js';
import type { List } from '../../src/cli/reader.js';
import { sectionsParser } from '../../src/cli/admin-file.js';
import type { SectionsParser } from '../../src/cli/admin-file.js';
import type { Sections } from '../../src/contract/kind.js';
import { readYaml as parseYaml } from '../../src/values/yaml.js';
import { loadKind } from '../support/bundle.js';
import { linesOf } from '../../src/cli/tree/text.js';
import { OperatorError } from '../../src/contract/error.js';
import type { AnyObject } from '../../src/contract/object.js';
import { ApiError } from '../../src/client/api-error.js';
import { installManifests } from '../../src/install/manifests.js';
import type { InstallProps } from '../../src/install/props.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { builtInKinds } from '../../src/kinds/index.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import { streamIngress } from '../../src/kinds/stream-ingress/kind.js';
import { render } from '../../src/render/renderer.js';
import { anObject, failure } from '../engine/support/builders.js';
import { MemoryCluster } from '../install/memory-cluster.js';

const now = new Date('2026-01-01T01:00:00Z');
const place = { kind: appService, namespace: 'shop' };

/** What `install` makes. */
function installed(props: Partial<InstallProps> = {}) {
  return installManifests({
    ...{ namespace: 'ops', image: 'reconstruct:1', kinds: builtInKinds, replicas: 2 },
    ...props,
  });
}

/** An operator's Deployment with more arguments, and variables without `RECONSTRUCT_`. */
function startedWith(
  deployment: AnyObject,
  more: readonly string[],
  variables: Readonly<Record<string, string>> = {},
): AnyObject {
  const copy = structuredClone(deployment) as AnyObject & {
    spec: { template: { spec: { containers: [{ args: string[]; env?: object[] }] } } };
  };
  const [container] = copy.spec.template.spec.containers;
  container.args.push(...more);
  const env = Object.entries(variables).map(([name, value]) => ({ name: `RECONSTRUCT_${name}`, value }));
  container.env = [...(container.env ?? []), ...env];
  return copy;
}

describe('the operators of a status', () => {
  const forbidden = () => Promise.reject(new ApiError('List', failure(403, 'Forbidden', 'not you')));

  function deployment(available: number, props: Partial<InstallProps> = {}): AnyObject {
    const found = installed({ kinds: [appService], ...props }).find(({ kind }) => kind === 'Deployment');
    return { ...found!, status: { availableReplicas: available } };
  }

  function lease(spec: object): AnyObject {
    const type = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' };
    return anObject(type, 'reconstruct', { namespace: 'ops' }, { spec });
  }

  const term = { leaseDurationSeconds: 15, renewTime: '2026-01-01T00:59:58.000000Z' };
  const held = lease({ holderIdentity: 'pod-1', ...term });

  function sourceOf(objects: readonly AnyObject[]): List {
    return ({ type, selector = '' }) => {
      const wanted = selector.split(',').filter((part) => part !== '');
      const isWanted = ({ metadata: { labels = {} } }: AnyObject): boolean =>
        wanted.map((part) => part.split('=')).every(([name = '', value]) => labels[name] === value);
      return Promise.resolve(objects.filter((each) => each.kind === type.kind && isWanted(each)));
    };
  }

  const notesOf = async (...objects: AnyObject[]) =>
    (await operatorsFor([place], sourceOf(objects), now)).notes;

  test('need no note where one is ready and leads, also one of Helm', async () => {
    const { metadata, ...rest } = deployment(2);
    const labels = { ...metadata.labels, 'app.kubernetes.io/managed-by': 'Helm' };
    const helms = { ...rest, metadata: { ...metadata, labels } };
    for (const object of [deployment(2), helms])
      expect(await operatorsFor([place], sourceOf([object, held]), now)).toEqual({
        operators: [{ namespace: 'ops', available: 2, replicas: 2, leader: 'pod-1' }],
        ...{ unattended: [], notes: [] },
      });
  });

  test.each([[[]], [[place, { ...place, namespace: 'team' }]]])(
    'that none is installed is a single line, which names those that are not seen: %#',
    async (places) => {
      const report = await operatorsFor(places, sourceOf([]), now);
      expect(report).toEqual({ operators: [], unattended: places, notes: [expect.any(String)] });
      expect(report.notes[0]).toMatch(
        /^No operator is installed in the cluster\. .* "reconstruct dev" .*isn't seen here.*"reconstruct install --apply"/,
      );
      expect(linesOf({ ...report, resources: [] }).size).toBe(1);
    },
  );

  test.each<[string, AnyObject[], RegExp]>([
    ['is for the kind', [deployment(2, { kinds: [jobWatcher] })], /^No operator looks after AppService/],
    ['watches there', [deployment(2, { watchNamespaces: ['team'] })], /^No operator looks after AppService/],
    [
      'is ready',
      [deployment(0), held],
      /^The operator in ops isn't ready.*"kubectl describe pods -n ops -l /,
    ],
    [
      'has replicas',
      [deployment(0, { replicas: 0 }), held],
      /no replicas.*"kubectl scale deployment reconstruct -n ops --replicas 2"/,
    ],
    [
      'leads',
      [deployment(2), lease({ holderIdentity: '', ...term })],
      /its lease has no holder.*"kubectl logs -n ops deployment\/reconstruct"/,
    ],
    [
      'has renewed its lease',
      [deployment(2), lease({ holderIdentity: 'x', ...term, renewTime: '2026-01-01T00:59:20Z' })],
      /its lease was renewed last at/,
    ],
  ])('that none %s is a note with a command', async (_, objects, note) => {
    expect(await notesOf(...objects)).toEqual([expect.stringMatching(note)]);
  });

  test('say by which options they leave things undone; one that observes looks after nothing, and needs no lease', async () => {
    const observing = startedWith(
      deployment(1, { onUpgrade: 'hold=appservice,team' }),
      ['--selector=team=a,!old', '--watch-namespace-selector=env=prod'],
      {
        OBSERVE_ONLY: 'true',
        DRIFT: 'warn',
      },
    );
    expect(await operatorsFor([place], sourceOf([observing]), now)).toMatchObject({
      operators: [
        {
          restraints: [
            '--observe-only',
            '--selector=team=a,!old',
            '--watch-namespace-selector=env=prod',
            '--drift=warn',
            '--on-upgrade=hold=appservice,team',
          ],
        },
      ],
      unattended: [place],
      notes: [
        'No operator looks after AppService in shop: the one in ops has --observe-only, and writes nothing. ' +
          '"kubectl logs -n ops deployment/reconstruct" shows what it would do',
      ],
    });
    const usual = startedWith(deployment(1, { onUpgrade: 'apply' }), ['--observe-only=false'], {
      ...{ DRIFT: 'correct', SELECTOR: '' },
    });
    const { operators, notes } = await operatorsFor([place], sourceOf([usual, held]), now);
    expect([operators?.[0]?.restraints, notes]).toEqual([undefined, []]);
  });

  test('have a note of a rollout that has stopped, unless it is of another kind or build', async () => {
    const annotations = {
      'rollout.reconstruct.kosmos.io/appservice': '0a1b2c3d stopped AppService shop/web is not ready',
      'rollout.reconstruct.kosmos.io/team': '0a1b2c3d stopped AppService shop/web is not ready',
    };
    const lease = { ...held, metadata: { ...held.metadata, annotations } };
    const noted = async (build: string) => {
      const mentions = (other: string): boolean => other === build;
      return (await operatorsFor([{ ...place, mentions }], sourceOf([deployment(2), lease]), now)).notes;
    };
    expect(await noted('0a1b2c3d')).toEqual([
      'The rollout of appservice by build 0a1b2c3d has stopped: AppService shop/web is not ready. ' +
        '"reconstruct release --resume appservice" has it go on',
    ]);
    expect(await noted('ffffffff')).toEqual([]);
  });

  test('that may not be read are a note; a lease that may not be read is none', async () => {
    const unreadable = await operatorsFor([place], forbidden, now);
    expect(unreadable).toEqual({
      unattended: [],
      notes: [expect.stringMatching(/^Whether an operator is there can't be seen: the right to list/)],
    });
    const source: List = ({ type }) =>
      type.kind === 'Lease' ? forbidden() : Promise.resolve([deployment(2)]);
    expect(await operatorsFor([place], source, now)).toMatchObject({
      operators: [{ namespace: 'ops', available: 2, replicas: 2 }],
      notes: [],
    });
  });
});

const forbidden = () =>
  Promise.reject(new OperatorError({ reason: 'Forbidden', message: 'List deployments: not you' }));
const closed = () => Object.assign(new MemoryCluster(), { list: forbidden, find: forbidden });

describe('the operator that is responsible for what is applied', () => {
  const app = (status?: object): AnyObject =>
    anObject(appService.type, 'web', { uid: 'u' }, { spec: {}, ...(status && { status }) });
  const given = (before?: AnyObject) => ({
    ...{ input: { kind: appService }, after: app() },
    ...(before && { before }),
  });

  function finder(cluster: MemoryCluster, operatorNamespace?: string) {
    const warnings = new Set<string>();
    const warn = (line: string): void => void warnings.add(line);
    const props = { cluster, warn, ...(operatorNamespace !== undefined && { operatorNamespace }) };
    return { find: responsibleOperator(props), warnings };
  }

  test('is the installed one; where the named namespace has none, a warning says so', async () => {
    const { find } = finder(new MemoryCluster(installed()));
    expect(await find(given())).toMatchObject({ namespace: 'ops' });
    const none = finder(new MemoryCluster());
    expect([await none.find(given()), [...none.warnings]]).toEqual([undefined, []]);
    const observing = installed().map((each) =>
      each.kind === 'Deployment' ? startedWith(each, ['--observe-only']) : each,
    );
    expect(await finder(new MemoryCluster(observing)).find(given())).toBeUndefined();
    const named = finder(new MemoryCluster(), 'ops');
    expect(await named.find(given())).toBeUndefined();
    expect([...named.warnings]).toEqual([
      'There is no operator in ops: what is made of these is applied here',
    ]);
  });

  test('is none where operators may not be read and none has written the status, with one warning', async () => {
    const { find, warnings } = finder(closed());
    for (const before of [undefined, app(), app({ observedGeneration: -1 })])
      expect(await find(given(before))).toBeUndefined();
    expect([...warnings]).toEqual([expect.stringContaining("can't be seen (List deployments: not you)")]);
  });

  test.each([{ observedGeneration: 0 }, { conditions: [{ type: 'Ready' }] }])(
    'is unknown for one with the status %j where operators may not be read: it is refused',
    async (status) => {
      await expect(finder(closed()).find(given(app(status)))).rejects.toMatchObject({
        exitCode: 3,
        message: expect.stringMatching(
          /^AppService shop\/web: .*--operator-namespace.*\nNothing was written$/s,
        ) as string,
      });
    },
  );
});

describe('the context of a diff', () => {
  const { apiVersion, kind } = appService.type;
  const metadata = { name: 'web', namespace: 'shop' };
  const cr = { apiVersion, kind, metadata, spec: { size: 4, image: 'web:1' } };
  const route = { parentRefs: [{ name: 'public' }] };
  const routed = { ...cr, spec: { ...cr.spec, ports: [{ port: 80 }], route } };

  function contextIn(cluster: MemoryCluster, given: Partial<OperatorContextProps> = {}) {
    const said: string[] = [];
    const props = {
      ...{
        cluster,
        render,
        flags: {},
        parse: async (...text: Parameters<SectionsParser>) => (await sectionsParser({}))(...text),
      },
      warn: (line: string) => void said.push(`warning: ${line}`),
      note: (line: string) => void said.push(line),
    };
    return { said, contextFor: operatorContext({ ...props, ...given }) };
  }

  test('is that of the installed operator; what is given wins', async () => {
    const flags = { '--ingress-namespace': 'edge', '--ingress-service': 'proxy' };
    const cluster = new MemoryCluster(installed({ flags, watchNamespaces: ['shop', 'team'] }));
    const { contextFor, said } = contextIn(cluster);
    expect(await contextFor(jobWatcher, ['shop'])).toMatchObject({
      ...{ flags: {}, operatorNamespace: 'ops', namespaces: ['shop', 'team'] },
    });
    const warning = installed().map((each) =>
      each.kind === 'Deployment' ? startedWith(each, ['--drift=warn', '--observe-only']) : each,
    );
    expect(await contextIn(new MemoryCluster(warning)).contextFor(appService, ['shop'])).toMatchObject({
      drift: 'warn',
    });
    expect((await contextFor(streamIngress, ['shop'])).flags).toEqual(flags);
    const given = { flags: { '--ingress-namespace': 'mine' }, watchNamespaces: ['a'] };
    expect(await contextIn(cluster, given).contextFor(streamIngress, ['shop'])).toMatchObject({
      flags: { '--ingress-namespace': 'mine', '--ingress-service': 'proxy' },
      ...{ operatorNamespace: 'ops', namespaces: ['a'] },
    });
    expect(said).toEqual([]);
  });

  test('is of the operator for the kind and the namespace; of several, the first with a warning', async () => {
    const cluster = new MemoryCluster([
      ...installed({ namespace: 'a', kinds: [appService] }),
      ...installed({ namespace: 'b', kinds: [jobWatcher], watchNamespaces: ['shop'] }),
      ...installed({ namespace: 'c', kinds: [jobWatcher], watchNamespaces: ['team', 'shop'] }),
    ]);
    const { contextFor, said } = contextIn(cluster, { files: { policy: {} } });
    expect(await contextFor(appService, ['team'])).toMatchObject({ operatorNamespace: 'a' });
    expect(await contextFor(jobWatcher, ['team'])).toMatchObject({ operatorNamespace: 'c' });
    expect(said).toEqual([]);
    expect(await contextFor(jobWatcher, ['shop'])).toMatchObject({ operatorNamespace: 'b' });
    expect(said).toEqual([
      'warning: jobwatcher.batch.my.github.com is looked after by operators in b, c: the one in b is taken; ' +
        'name one with --operator-namespace',
    ]);
    const named = contextIn(cluster, { operatorNamespace: 'c' });
    expect(await named.contextFor(jobWatcher, ['shop'])).toMatchObject({ operatorNamespace: 'c' });
    expect(named.said).toEqual([]);
  });

  test('is assumed where operators may not be read, which a warning says where it matters', async () => {
    const { contextFor, said } = contextIn(closed());
    const { render: unrestricted } = await contextFor(appService, ['shop']);
    expect(unrestricted(appService, routed)).toHaveLength(3);
    expect(await contextFor(streamIngress, ['shop'])).toMatchObject({
      operatorNamespace: 'reconstruct-system',
    });
    expect([...new Set(said)]).toEqual([
      "warning: Which operator is installed can't be seen (List deployments: not you): one in reconstruct-system, " +
        'without flags and settings, that forbids nothing, is assumed; say more with --operator-namespace, --policy and the flags that "run" has',
    ]);
    const given = contextIn(closed(), { files: { policy: {} } });
    await given.contextFor(appService, ['shop']);
    expect(given.said).toEqual([]);
    const named = contextIn(closed(), { operatorNamespace: 'ops' });
    expect(await named.contextFor(appService, ['shop'])).toMatchObject({ operatorNamespace: 'ops' });
    expect(named.said).toEqual([
      expect.stringContaining('one in ops, without flags and settings, that forbids nothing, is assumed'),
    ]);
  });

  describe('has the policy', () => {
    const PLACE = 'ConfigMap ops/reconstruct-policy';
    const clusterWith = (text: string) => new MemoryCluster(installed({ policy: { text, parsed: {} } }));
    const without = Object.assign(clusterWith('{}'), { find: () => Promise.resolve(undefined) });
    const small = { maxSize: 3 };

    test.each<[what: string, MemoryCluster, Partial<OperatorContextProps>, object | undefined, string[]]>([
      ['that is given', clusterWith('{}'), { files: { policy: { appservice: small } } }, small, []],
      [
        'of the operator, read once, and noted',
        ...([clusterWith('appservice: { maxSize: 3 }'), {}, small] as const),
        [`Judged by the policy of the operator in ops: ${PLACE}`],
      ],
      [
        "that forbids nothing where it can't be read, with a warning",
        ...([without, {}, undefined] as const),
        [
          `warning: The policy of the operator in ops can't be read (there is no policy.yaml in the ${PLACE}): that it ` +
            'forbids nothing is assumed; give it with --policy',
        ],
      ],
    ])('%s', async (_, cluster, given, section, lines) => {
      const find = vi.spyOn(cluster, 'find');
      const { contextFor, said } = contextIn(cluster, given);
      expect(await contextFor(jobWatcher, [])).not.toHaveProperty('policy');
      expect(find).not.toHaveBeenCalled();
      const { policy, render: restricted } = await contextFor(appService, ['shop']);
      await contextFor(appService, []);
      expect(policy).toEqual(section);
      if (section) expect(() => restricted(appService, cr)).toThrow('maxSize');
      else expect(restricted(appService, routed)).toHaveLength(3);
      expect(find.mock.calls.length).toBeLessThan(2);
      expect(said).toEqual(lines);
    });

    test('and the settings, where the kind has some', async () => {
      const text = 'page: { domain: example.com }';
      const { kind: page } = await loadKind('test/support/kinds/page.config.mjs');
      const parse = (...[, , given]: Parameters<SectionsParser>) =>
        Promise.resolve(parseYaml(given) as Sections);
      const cr = { ...page.type, metadata, spec: {} };
      const kinds = [page];

      const cluster = new MemoryCluster(installed({ kinds, settings: { text, parsed: {} } }));
      const { contextFor, said } = contextIn(cluster, { parse });
      const { render: restricted, inForce } = await contextFor(page, ['shop']);
      expect(restricted(page, cr)[0]).toMatchObject({ data: { host: 'web.example.com' } });
      expect(inForce?.current.settings).toEqual({ page: { domain: 'example.com' } });
      expect(said).toEqual([
        'Judged by the settings of the operator in ops: ConfigMap ops/reconstruct-settings',
      ]);

      const unread = Object.assign(cluster, { find: () => Promise.resolve(undefined) });
      const none = contextIn(unread, { parse });
      await none.contextFor(page, ['shop']);
      expect(none.said).toEqual([
        "warning: The settings of the operator in ops can't be read (there is no settings.yaml in the ConfigMap " +
          'ops/reconstruct-settings): that it has none is assumed; give them with --settings',
      ]);
    });

    test('that is invalid ends the diff, since only the operator knows the one before', async () => {
      const { contextFor } = contextIn(clusterWith('appservice:\n  maxSise: 3\n'));
      await expect(contextFor(appService, [])).rejects.toMatchObject({
        exitCode: 3,
        lines: [
          expect.stringMatching(new RegExp(`^${PLACE}: line 2: .*maxSise`)) as string,
          'The operator in ops continues with the policy that it had before; correct it, or give that one with --policy',
        ],
      });
    });
  });
});
