import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { repoFolder } from '../../sandbox/paths.js';
import { bundle } from '../support/operator.js';

const root = repoFolder();
let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'install-'));
  return () => {
    rmSync(folder, { recursive: true });
  };
});

function reconstruct(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(process.execPath, [bundle, ...args], {
    cwd: folder,
    encoding: 'utf8',
    env: { ...process.env, CDK8S_OUTDIR: '', KUBECONFIG: join(folder, 'none') },
  });
}

test('it prints YAML, the same each time, and asks no cluster', () => {
  const all = ['--kinds', 'appservice,jobwatcher,streamingress'];
  const { status, stdout, stderr } = reconstruct('install', ...all);
  expect([status, stderr]).toEqual([0, '']);
  expect(reconstruct('install', '--print', ...all).stdout).toBe(stdout);
  const kinds = parseAllDocuments(stdout).map((document) => (document.toJS() as { kind: string }).kind);
  expect(kinds.filter((kind) => kind === 'CustomResourceDefinition')).toHaveLength(3);
  expect(kinds.at(-1)).toBe('Deployment');
});

test('a kind that needs a namespace of others is printed only where it is named', () => {
  const { status, stdout, stderr } = reconstruct('install');
  expect(status).toBe(0);
  expect(stderr).toBe(
    'streamingress.nginx-stream.jeffthecoder.xyz needs rights in the namespace ingress-nginx, which may not be there: ' +
      'it is left out; name it to have it, as in --kinds appservice,streamingress,jobwatcher\n',
  );
  expect(stdout).not.toMatch(/ingress-nginx|streamingress/);
  expect(reconstruct('install', '--kinds', 'appservice,jobwatcher').stdout).toBe(stdout);
  const own = ['--namespace', 'proxy', '--ingress-namespace', 'proxy'];
  expect(reconstruct('install', ...own)).toMatchObject({
    stdout: expect.stringContaining('streamingresses') as string,
    stderr: '',
  });
});

test('cdk8s synth makes the same of lib/install.js', async () => {
  const output = join(folder, 'synth');
  const path = [join(root, 'node_modules/.bin'), process.env.PATH].join(delimiter);
  const app = `${process.execPath} ${join(root, 'lib/install.js')} --namespace ops --replicas 3`;
  const cdk8s = join(root, 'node_modules/cdk8s-cli/bin/cdk8s');
  await promisify(execFile)(process.execPath, [cdk8s, 'synth', '-a', app, '-o', output], {
    cwd: folder,
    env: { ...process.env, PATH: path, CDK8S_CHECK_UPGRADE: 'false' },
  });
  const files = readdirSync(output).filter((name) => name.endsWith('.yaml'));
  expect(files).toEqual(['reconstruct.yaml']);
  expect(readFileSync(join(output, 'reconstruct.yaml'), 'utf8')).toBe(
    reconstruct('install', '--namespace', 'ops', '--replicas', '3').stdout,
  );
});

test('a chart is written and brought up to date, and what others have put beside it stays', () => {
  const output = join(folder, 'chart');
  const files = (): string[] =>
    readdirSync(output, { recursive: true, encoding: 'utf8' })
      .filter((name) => !name.startsWith('.'))
      .sort();
  const write = (...args: string[]): unknown =>
    reconstruct('install', '-o', 'helm', '--output-dir', output, ...args);
  expect(write()).toMatchObject({
    ...{ status: 0, stdout: '' },
    stderr: expect.stringMatching(/^\d+ files written to \S+\n$/) as string,
  });
  const all = files();
  expect(all.filter((name) => name.startsWith('files/crds/'))).toHaveLength(3);
  writeFileSync(join(output, 'templates/mine.yaml'), '');
  expect(write('--kinds', 'jobwatcher')).toMatchObject({ status: 0 });
  const removed = all.filter((name) => !files().includes(name));
  expect(removed.every((name) => /^files\/(kinds|crds)\/(appservice|streamingress)/.test(name))).toBe(true);
  expect(files()).toContain('templates/mine.yaml');
  expect(readFileSync(join(output, 'values.yaml'), 'utf8')).toMatch(/^kinds:\n {2}jobwatcher: true\n$/m);
});

test('a policy is checked, and installed', () => {
  const file = join(folder, 'policy.yaml');
  writeFileSync(file, 'appservice: { maxSize: 10 }\n');
  const { stdout } = reconstruct('install', '--policy', file);
  expect(stdout).toContain('name: reconstruct-policy\n');
  expect(stdout).toContain('maxSize: 10');
  writeFileSync(file, 'appservice: { maxSizes: 10 }\n');
  expect(reconstruct('install', '--policy', file)).toMatchObject({
    ...{ status: 2, stdout: '' },
    stderr: expect.stringContaining('did you mean maxSize?') as string,
  });
});

test.each([
  [['--image', 'reconstruct'], /with a tag or a digest, as in .*reconstruct:\d/],
  [['--image', 'localhost:5000/reconstruct'], /with a tag or a digest/],
  [['--image', 'a b:1'], /write a repository in lower case/],
  [['--namespace', 'Ops'], /can't name a namespace/],
  [['--replicas', '0'], /whole number, 1 or more/],
  [['--kinds', 'nothing'], /there is no kind nothing/],
  [['--print', '--apply'], /cannot be used with/],
  [['-o', 'helm'], /A chart is a folder: name it with --output-dir DIR/],
  [['-o', 'helm', '--apply'], /cannot be used with/],
  [['-o', 'helm', '--output-dir', 'c', '-n', 'ops'], /leave it out, and use "helm install --namespace"/],
  [['-o', 'json', '--output-dir', 'c'], /leave out -o json/],
  [['-o', 'dist'], /Allowed choices are yaml, json, helm/],
  [['--output-dir', 'c', '--apply'], /cannot be used with/],
  [['--argo-health', '--output-dir', 'c'], /cannot be used with/],
  [['--argo-health', '--policy', 'p.yaml'], /cannot be used with option '--policy/],
  [['--argo-health', '--monitoring'], /cannot be used with option '--monitoring/],
  [['--argo-health', '--replicas', '3'], /cannot be used with option '--replicas/],
  [['--argo-health', '-n', 'ops'], /cannot be used with option '-n, --namespace/],
  [['--argo-health', '--jobwatcher-deletes-per-second', '5'], /cannot be used with option '--jobwatcher/],
  [['--dry-run'], /--dry-run needs --apply: add it/],
  [['--replace'], /--replace needs --apply: add it/],
  [['--jobwatcher-deletes-per-second', '0'], /is not a whole number from 1 to 1000/],
  [['--monitoring', 'alerts'], /There is no alerts: name some of service-monitor, rules, dashboard/],
  [['--monitoring', '--monitoring-labels', 'release'], /release is no label: write name=value/],
  [['--monitoring', '--monitoring-labels', 'app.kubernetes.io/name=x'], /set by the installation itself/],
  [['--monitoring', '--runbooks', 'docs'], /docs is no URL/],
  [['--monitoring-labels', 'release=prometheus'], /--monitoring-labels needs --monitoring/],
  [['--runbooks', 'https://example.com'], /--runbooks needs --monitoring/],
])('%s is refused as bad usage', (args, message) => {
  const { status, stdout, stderr } = reconstruct('install', ...args);
  expect([status, stdout]).toEqual([2, '']);
  expect(stderr).toMatch(message);
});

test.each([[['install', '--apply']], [['uninstall', '--yes']]])(
  '%j says in one line that there is no cluster',
  (args) => {
    const kubeconfig = join(folder, 'unreachable.yaml');
    writeFileSync(
      kubeconfig,
      JSON.stringify({
        ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'a' },
        clusters: [{ name: 'a', cluster: { server: 'https://127.0.0.1:1' } }],
        users: [{ name: 'a', user: { token: 'none' } }],
        contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }],
      }),
    );
    const { status, stderr } = reconstruct(...args, '--kubeconfig', kubeconfig);
    expect(status).toBe(3);
    expect(stderr).toMatch(
      /^The cluster at 127.0.0.1:1 doesn't answer: .*; check --kubeconfig and --context, .*\n$/,
    );
    onTestFinished(() => {
      rmSync(kubeconfig);
    });
  },
);

test('monitoring is asked for as a whole or in parts, with labels', () => {
  const added = (...args: string[]): { kind: string; metadata: { labels: Record<string, string> } }[] => {
    const { status, stdout, stderr } = reconstruct('install', '--kinds', 'jobwatcher', ...args);
    expect([status, stderr]).toEqual([0, '']);
    const objects = parseAllDocuments(stdout).map((document) => document.toJS() as (typeof all)[number]);
    const watching = ['ServiceMonitor', 'PrometheusRule', 'ConfigMap'];
    return objects.filter(({ kind }) => watching.includes(kind));
  };
  const all = added('--monitoring');
  expect(all.map(({ kind }) => kind)).toEqual(['ConfigMap', 'ServiceMonitor', 'PrometheusRule']);
  const labels = ['--monitoring-labels', 'release=prometheus,example.com/team=ops'];
  const runbooks = ['--runbooks', 'https://example.com/runbooks/'];
  const [rules, ...none] = added('--monitoring', 'rules', ...labels, ...runbooks);
  expect([rules?.kind, none]).toEqual(['PrometheusRule', []]);
  expect(rules?.metadata.labels).toMatchObject({ release: 'prometheus', 'example.com/team': 'ops' });
  expect(JSON.stringify(rules)).toContain('"https://example.com/runbooks/ReconstructDown.md"');
  expect(added()).toEqual([]);
});
