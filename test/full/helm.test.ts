import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { repoFolder } from '../../sandbox/paths.js';
import { operatorImage, packageVersion } from '../../src/cli/package.js';
import { OLDEST } from '../../src/cli/cluster.js';
import type { Kind, Sections } from '../../src/contract/kind.js';
import type { AnyObject } from '../../src/contract/object.js';
import { resourceType } from '../../src/contract/resource.js';
import { kindName, OPTIONS_ANNOTATION } from '../../src/install/names.js';
import { installManifests } from '../../src/install/manifests.js';
import { MONITORING_PARTS } from '../../src/install/props.js';
import type { InstallProps } from '../../src/install/props.js';
import type { PolicyRule } from '../../src/install/rules.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import { streamIngress } from '../../src/kinds/stream-ingress/kind.js';
import { deployments } from '../support/cluster.js';
import { loadKind } from '../support/bundle.js';
import { command, goTool, runTool } from '../support/commands.js';
import type { Ran } from '../support/commands.js';
import { linted, RELEASE_NAMESPACE, templated, writeChart } from '../support/helm.js';
import { ownControlPlane } from '../support/test-clusters.js';

const kinds: readonly Kind[] = [appService, jobWatcher, streamIngress];
const image = operatorImage();
const plain = join(repoFolder(), 'charts/reconstruct');

let folder: string;
/** As install writes it. */
let chart: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'helm-'));
  await goTool('helm');
  chart = await writeChart(folder);
});
afterAll(() => rm(folder, { recursive: true }));

async function rendered(values: object, of = plain): Promise<Map<string, AnyObject>> {
  const { code, stdout, stderr } = await templated(folder, of, values);
  expect(code, stderr).toBe(0);
  const documents = parseAllDocuments(stdout).flatMap(
    (document) => (document.toJS() as AnyObject | null) ?? [],
  );
  const objects = new Map(documents.map((object) => [idOf(object), comparable(object)]));
  expect(objects.size).toBe(documents.length);
  return objects;
}

/** Objects of `install`, but for the namespace, which is Helm's to make. */
function installed(changed: Partial<InstallProps>): Map<string, AnyObject> {
  const props = { namespace: RELEASE_NAMESPACE, image, kinds, replicas: 2, ...changed };
  const objects = installManifests(props).filter(({ kind }) => kind !== 'Namespace');
  return new Map(objects.map((object) => [idOf(object), comparable(object)]));
}

function idOf({ kind, metadata: { namespace = '', name } }: AnyObject): string {
  return `${kind} ${namespace}/${name}`;
}

/** Without the marks of who made it, with each right by itself, and with policy and settings parsed. */
function comparable({ metadata: { annotations, ...metadata }, ...rest }: AnyObject): AnyObject {
  const { 'helm.sh/resource-policy': _, [OPTIONS_ANNOTATION]: __, ...others } = annotations ?? {};
  const labels = { ...metadata.labels, 'app.kubernetes.io/managed-by': 'any' };
  const object: AnyObject = { ...rest, metadata: { ...metadata, labels, annotations: others } };
  const data = object.data as Record<string, string> | undefined;
  const file = data?.['policy.yaml'] ?? data?.['settings.yaml'];
  if (file !== undefined) return { ...object, data: parse(file) as unknown };
  if (!object.rules) return object;
  return { ...object, rules: [...new Set((object.rules as readonly PolicyRule[]).flatMap(rightsOf))].sort() };
}

function rightsOf(rule: PolicyRule): string[] {
  if ('nonResourceURLs' in rule) return [JSON.stringify(rule)];
  const { apiGroups, resources, verbs, resourceNames = ['*'] } = rule;
  return apiGroups.flatMap((group) =>
    resources.flatMap((resource) =>
      resourceNames.flatMap((name) => verbs.map((verb) => `${verb} ${resource}.${group} ${name}`)),
    ),
  );
}

const on = (chosen: readonly Kind[]): Record<string, boolean> =>
  Object.fromEntries(kinds.map((kind) => [kind.name, chosen.includes(kind)]));

/** Choices of kinds: each by itself, and all. */
const choices = [...kinds.map((kind) => [kind]), kinds];

describe('the chart', () => {
  test('has nothing that helm lint warns of, and the version of the package', async () => {
    for (const each of [plain, chart]) {
      const { code, stdout, stderr } = await linted(folder, each);
      expect(stdout + stderr).not.toMatch(/\[(WARNING|ERROR)\]/);
      expect(code).toBe(0);
    }
    const version = packageVersion();
    expect(parse(await readFile(join(plain, 'Chart.yaml'), 'utf8'))).toMatchObject({
      ...{ version, appVersion: version, kubeVersion: `>=${OLDEST}.0-0` },
    });
  });

  test('installs by default what install does, but what needs a namespace of others', async () => {
    for (const each of [plain, chart])
      expect(await rendered({}, each)).toEqual(installed({ kinds: [appService, jobWatcher] }));
  });

  test.each(choices.map((chosen) => [chosen.map(({ name }) => name).join(), chosen] as const))(
    'installs what install does for %s, in the whole cluster and in single namespaces',
    async (_, chosen) => {
      // One is its own, and one that of the proxy.
      const watchNamespaces = ['shop', RELEASE_NAMESPACE, 'ingress-nginx'];
      for (const where of [{}, { watchNamespaces }])
        expect(await rendered({ kinds: on(chosen), ...where })).toEqual(
          installed({ kinds: chosen, ...where }),
        );
    },
  );

  test('gives options on, and the rights that follow from them', async () => {
    const options = {
      ...{
        ingressNamespace: 'edge',
        ingressService: 'proxy',
        tcpServicesConfigmap: 'tcp',
        udpServicesConfigmap: 'udp',
      },
      ...{ jobwatcherAdminNamespaces: ['admins', 'more'], jobwatcherDeletesPerSecond: 1000 },
    };
    for (const ingressController of ['Deployment/nginx', 'DaemonSet/nginx.edge'])
      for (const where of [{}, { watchNamespaces: ['edge', 'shop'] }])
        expect(
          await rendered({ kinds: on(kinds), options: { ...options, ingressController }, ...where }),
        ).toEqual(
          installed({
            ...where,
            flags: {
              ...{ '--ingress-namespace': 'edge', '--ingress-service': 'proxy' },
              ...{ '--tcp-services-configmap': 'tcp', '--udp-services-configmap': 'udp' },
              ...{
                '--jobwatcher-admin-namespaces': ['admins', 'more'],
                '--jobwatcher-deletes-per-second': '1000',
              },
              '--ingress-controller': ingressController,
            },
          }),
        );
  });

  test('leaves the IDs of its user to the cluster where its value says so, as install does', async () => {
    const objects = await rendered({ omitUserIds: true });
    expect(objects).toEqual(installed({ kinds: [appService, jobWatcher], omitUserIds: true }));
    expect(JSON.stringify([...objects])).not.toMatch(/runAsUser|runAsGroup|fsGroup/);
  });

  test.each([5, 'hold=appservice'])(
    'holds what a new build would change, as install does: %s',
    async (value) => {
      expect(await rendered({ onUpgrade: value })).toEqual(
        installed({ kinds: [appService, jobWatcher], onUpgrade: String(value) }),
      );
    },
  );

  test('has image, replicas and policy from its values', async () => {
    const digest = `sha256:${'a'.repeat(64)}`;
    const parsed = { appservice: { maxSize: 3, imageRegistries: ['r.io'] } };
    expect(
      await rendered({ image: { repository: 'r.io/a', tag: '', digest }, replicas: 1, policy: parsed }),
    ).toEqual(
      installed({
        ...{ kinds: [appService, jobWatcher], image: `r.io/a@${digest}`, replicas: 1 },
        policy: { text: JSON.stringify(parsed), parsed },
      }),
    );
  });

  test.each(MONITORING_PARTS)('installs %s where its value says so, as install does', async (part) => {
    const value = part === 'service-monitor' ? 'serviceMonitor' : part;
    expect(await rendered({ monitoring: { [value]: true } })).toEqual(
      installed({ kinds: [appService, jobWatcher], monitoring: { parts: [part] } }),
    );
    const labels = { release: 'prometheus', grafana_dashboard: 'yes', 'example.com/team': '' };
    const runbooks = 'https://example.com/runbooks';
    expect(await rendered({ monitoring: { [value]: true, labels, runbooks: `${runbooks}/` } })).toEqual(
      installed({ kinds: [appService, jobWatcher], monitoring: { parts: [part], labels, runbooks } }),
    );
  });

  test.each([{}, { certificateSecret: 'metrics-tls' }])(
    'secures the metrics as install does, %j',
    async (how) => {
      const policy = { appservice: { maxSize: 3 } };
      for (const where of [{}, { watchNamespaces: ['shop'] }])
        expect(
          await rendered({
            metrics: { secure: true, ...how },
            policy,
            monitoring: { serviceMonitor: true },
            ...where,
          }),
        ).toEqual(
          installed({
            ...{ kinds: [appService, jobWatcher], secureMetrics: how, ...where },
            ...{
              policy: { text: JSON.stringify(policy), parsed: policy },
              monitoring: { parts: ['service-monitor'] },
            },
          }),
        );
    },
  );

  test.each([
    { targets: [{ name: 'edge', ingressNamespace: 'edge', ingressController: 'DaemonSet/nginx' }] },
    { crossNamespace: 'Annotation', targets: [{ name: 'a', kind: 'Gateway', gateway: 'edge/a' }] },
  ])('gives the rights for the targets of the policy %j', async (streamingress) => {
    const parsed = { streamingress };
    for (const options of [{}, { ingressService: 'mine' }])
      expect(await rendered({ kinds: on([streamIngress]), policy: parsed, options })).toEqual(
        installed({
          ...{ kinds: [streamIngress], policy: { text: JSON.stringify(parsed), parsed } },
          flags: options.ingressService === undefined ? {} : { '--ingress-service': options.ingressService },
        }),
      );
  });

  test('is made with what install was given, kinds of a configuration included', async () => {
    const file = join(folder, 'policy.yaml');
    const parsed = { appservice: { maxSize: 3 } };
    await writeFile(file, JSON.stringify(parsed));
    const config = join(repoFolder(), 'examples/scheduled-task/reconstruct.config.mjs');
    const digest = `sha256:${'a'.repeat(64)}`;
    const own = await writeChart(
      folder,
      ...['--config', config, '--kinds', 'scheduledtask,appservice,streamingress', '--policy', file],
      ...['--image', `r.io:5000/a/b@${digest}`, '--replicas', '3', '--watch-namespace', 'shop'],
      ...['--ingress-namespace', 'edge', '--monitoring', 'rules', '--monitoring-labels', 'release=a'],
      ...['--metrics-secure', '--metrics-cert-secret', 'metrics-tls'],
    );
    expect(parse(await readFile(join(own, 'values.yaml'), 'utf8'))).toMatchObject({
      ...{ image: { repository: 'r.io:5000/a/b', tag: '', digest }, replicas: 3, watchNamespaces: ['shop'] },
      kinds: { scheduledtask: true, appservice: true, streamingress: true },
      ...{ options: { ingressNamespace: 'edge' }, policy: parsed },
      monitoring: { serviceMonitor: false, rules: true, dashboard: false, labels: { release: 'a' } },
    });
    const { scheduledTask } = (await import(join(repoFolder(), 'examples/scheduled-task/kind.mjs'))) as {
      scheduledTask: Kind;
    };
    expect(await rendered({}, own)).toEqual(
      installed({
        ...{
          kinds: [scheduledTask, appService, streamIngress],
          image: `r.io:5000/a/b@${digest}`,
          replicas: 3,
        },
        ...{ watchNamespaces: ['shop'], flags: { '--ingress-namespace': 'edge' } },
        policy: { text: JSON.stringify(parsed), parsed },
        monitoring: { parts: ['rules'], labels: { release: 'a' } },
        secureMetrics: { certificateSecret: 'metrics-tls' },
      }),
    );
  });

  test('has settings from its values, beside the policy', async () => {
    const { kind, config } = await loadKind('test/support/kinds/page.config.mjs');
    const file = join(folder, 'settings.yaml');
    const [first, later] = ['a.example.com', 'b.example.com'].map((domain) => ({ page: { domain } }));
    await writeFile(file, JSON.stringify(first));
    const own = await writeChart(
      folder,
      ...['--config', config, '--kinds', 'page,appservice', '--settings', file, '--image', 'r.io/a:1'],
    );
    const expected = { kinds: [kind, appService], image: 'r.io/a:1' };
    const given = (parsed: Sections) => ({ text: JSON.stringify(parsed), parsed });
    expect(await rendered({}, own)).toEqual(installed({ ...expected, settings: given(first!) }));
    const policy = { appservice: { maxSize: 3 } };
    expect(await rendered({ settings: later, policy }, own)).toEqual(
      installed({ ...expected, settings: given(later!), policy: given(policy) }),
    );
    const { code, stderr } = await templated(folder, own, { settings: { page: { domains: 'a' } } });
    expect([code, stderr]).toEqual([1, expect.stringContaining("at '/settings/page'")]);
  });

  test.each([
    [{ image: { digest: 'sha256:1' } }, '/image/digest'],
    [{ replicas: 0 }, '/replicas'],
    [{ kinds: { appservice: false, jobwatcher: false } }, '/kinds'],
    [{ watchNamespaces: ['Shop'] }, '/watchNamespaces/0'],
    [{ options: { ingressController: 'nginx' } }, '/options/ingressController'],
    [{ policy: { appservice: { maxSizes: 1 } } }, '/policy/appservice'],
    [{ settings: { appservice: {} } }, '/settings'],
    [{ monitoring: { labels: { release: 'a b' } } }, '/monitoring/labels/release'],
    [{ replica: 2 }, "''"],
  ])('refuses the values %j', async (values, path) => {
    const { code, stdout, stderr } = await templated(folder, chart, values);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toContain(`at '${path.replaceAll("'", '')}'`);
  });
});

const definitions = resourceType({
  ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' },
  namespaced: false,
});

describe('on a cluster', () => {
  const own = ownControlPlane({ apiOnly: true });

  async function helm(...args: string[]): Promise<string> {
    const place = ['--namespace', RELEASE_NAMESPACE, '--kubeconfig', own.sandbox.adminKubeconfig];
    const { code, stdout, stderr } = await runTool('helm', [...args, ...place], folder);
    expect(code, stderr + stdout).toBe(0);
    return stdout;
  }

  const asAdmin = (...args: string[]): Promise<Ran> =>
    command(...args, '--kubeconfig', own.sandbox.adminKubeconfig);

  const crd = { type: definitions, name: appService.crd.metadata.name };
  const deployment = { type: deployments, namespace: RELEASE_NAMESPACE, name: 'reconstruct' };

  test('Helm brings CRDs up to date, keeps them when the rest goes, and takes them up again', async () => {
    const notes = await helm('install', 'mine', chart, '--create-namespace');
    expect(notes).toContain(
      `reconstruct is installed in ${RELEASE_NAMESPACE}. It reconciles ` +
        `${[appService, jobWatcher].map(kindName).sort().join(', ')}.\n`,
    );
    expect(notes).toContain('\n  reconstruct status\n');
    expect(await own.cluster.find(deployment)).toBeDefined();

    const file = join(chart, `files/crds/${crd.name}.yaml`);
    const text = await readFile(file, 'utf8');
    const [shortName, longer] = ['      - appsvc\n', '      - appsvc\n      - asvc\n'];
    expect(text).toContain(shortName);
    await writeFile(file, text.replace(shortName, longer));
    await helm('upgrade', 'mine', chart);
    expect((await own.cluster.get(crd)).spec).toMatchObject({ names: { shortNames: ['appsvc', 'asvc'] } });
    await writeFile(file, text);

    await helm('uninstall', 'mine');
    expect(await own.cluster.find(deployment)).toBeUndefined();
    expect(await own.cluster.find(crd)).toBeDefined();
    await helm('install', 'mine', chart);
    expect((await own.cluster.get(crd)).spec).toMatchObject({ names: { shortNames: ['appsvc'] } });
  });

  test('install and uninstall leave it to Helm, in one line with the command that helps', async () => {
    const line = async (...args: string[]): Promise<string> => {
      const { code, stdout, stderr } = await asAdmin(...args);
      return `${code} ${stdout}${stderr}`;
    };
    const remedy = `"helm uninstall mine --namespace ${RELEASE_NAMESPACE}"`;
    const names = [appService, jobWatcher].map(kindName).join(', ');
    expect(await line('install', '--apply', '--kinds', 'appservice,jobwatcher')).toBe(
      `3 An operator in the namespace ${RELEASE_NAMESPACE} already looks after ${names.split(', ').sort().join(', ')} here: ` +
        `remove it with ${remedy}, or divide kinds or namespaces with --kinds or --watch-namespace\n`,
    );
    expect(await line('install', '--apply', '--kinds', 'appservice', '-n', RELEASE_NAMESPACE)).toMatch(
      /^3 \w+ \S+ exists and was created by Helm: change it with "helm upgrade", or remove it first with "helm uninstall mine .*"\n$/,
    );
    expect(await line('uninstall', '--yes', '-n', RELEASE_NAMESPACE)).toBe(
      `3 The operator in the namespace ${RELEASE_NAMESPACE} was installed by Helm: remove it with ${remedy}\n`,
    );
  });
});
