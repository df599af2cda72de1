import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  cpSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { repoFolder } from '../../../sandbox/paths.js';
import type { AnyObject } from '../../../src/contract/object.js';
import { bundle } from '../../support/operator.js';

interface Plugin {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly version: string;
    readonly discover: { readonly fileName: string };
    readonly generate: { readonly command: readonly string[]; readonly args: readonly string[] };
    readonly parameters: { readonly static: readonly { readonly name: string }[] };
  };
}

const root = repoFolder();
const read = (file: string): unknown => parse(readFileSync(join(root, file), 'utf8')) as unknown;
const plugin = read('gitops/argocd/plugin.yaml') as Plugin;
/** The folder of an Application, as the plugin's sidecar gets it; and the folder of its programs. */
let folder: string;
let bin: string;
/** Files can be read and nothing else: neither written nor run, and there is no network. */
let alone: string;

beforeAll(() => {
  const made = mkdtempSync(join(tmpdir(), 'plugin-'));
  // For the user of the sidecar.
  chmodSync(made, 0o755);
  [folder, bin] = [join(made, 'app'), join(made, 'bin')];
  cpSync(join(root, 'examples/gitops/plugin'), folder, { recursive: true });
  mkdirSync(bin);
  // As in the sidecar's image: that user may not even see the folder of this repository.
  copyFileSync(process.execPath, join(bin, 'node'));
  copyFileSync(join(root, 'test/full/gitops/no-network.mjs'), join(made, 'no-network.mjs'));
  cpSync(dirname(bundle), join(made, 'bundle'), { recursive: true });
  symlinkSync(join(made, 'bundle/reconstruct.mjs'), join(bin, 'reconstruct'));
  alone = `--permission --allow-fs-read=* --import ${pathToFileURL(join(made, 'no-network.mjs')).href}`;
});

afterAll(() => {
  rmSync(join(folder, '..'), { recursive: true });
});

/** Runs the command of the plugin as Argo CD's cmp-server does. */
function generate(env: Readonly<Record<string, string>> = {}, nodeOptions = alone) {
  const [command, ...first] = plugin.spec.generate.command;
  const isRoot = process.getuid?.() === 0;
  const { status, stdout, stderr } = spawnSync(command!, [...first, ...plugin.spec.generate.args], {
    ...{ cwd: folder, encoding: 'utf8' },
    env: {
      PATH: `${bin}:/usr/bin:/bin`,
      ARGOCD_APP_NAMESPACE: 'shop-preview',
      NODE_OPTIONS: nodeOptions,
      ...env,
    },
    ...(isRoot && { uid: 999, gid: 999 }),
  });
  const objects = parseAllDocuments(stdout).map((document) => document.toJS() as AnyObject);
  return {
    code: status,
    stderr,
    objects,
    names: objects.map(({ kind, metadata }) => `${kind} ${metadata.namespace}/${metadata.name}`),
  };
}

test('it renders the folder in a bare environment, with nothing but manifests on standard output', () => {
  const { code, names, stderr } = generate();

  expect({ code, names, stderr }).toEqual({
    ...{ code: 0, stderr: '' },
    names: ['Deployment shop-preview/preview', 'Service shop-preview/preview'],
  });
});

test('the folder is found by its marker', () => {
  expect(globSync(plugin.spec.discover.fileName, { cwd: folder })).toEqual(['.reconstruct']);
});

test('each parameter that is announced counts', () => {
  const inner = join(folder, 'inner');
  mkdirSync(inner);
  writeFileSync(
    join(inner, 'api.yaml'),
    readFileSync(join(folder, 'web.yaml'), 'utf8').replace('name: preview', 'name: api'),
  );

  expect(plugin.spec.parameters.static.map(({ name }) => name)).toEqual(['namespace', 'kinds', 'recursive']);
  expect(generate({ PARAM_NAMESPACE: 'other' }).names[0]).toBe('Deployment other/preview');
  expect(generate({ PARAM_KINDS: 'jobwatcher' })).toMatchObject({
    ...{ code: 2, names: [] },
    stderr: expect.stringContaining(
      'AppService of kosmos.io/v1 is not a kind that is rendered here',
    ) as string,
  });
  expect(generate({ PARAM_RECURSIVE: 'true' }).names).toContain('Deployment shop-preview/api');
});

test('a parameter is never more than a value', () => {
  expect(generate({ PARAM_NAMESPACE: '--stdout' })).toMatchObject({ code: 2, names: [] });
  expect(generate({ PARAM_KINDS: '"; $(echo appservice)' })).toMatchObject({ code: 2, names: [] });
});

test('the policy of the sidecar counts, and code of the repository is not run', () => {
  const policy = join(folder, '..', 'policy.yaml');
  writeFileSync(policy, 'appservice: { imageRegistries: [registry.example.com/other] }\n');
  writeFileSync(join(folder, 'reconstruct.config.mjs'), "throw new Error('run');\n");

  expect(generate({ RECONSTRUCT_POLICY: policy })).toMatchObject({
    ...{ code: 2, names: [] },
    stderr: expect.stringContaining("which is not in the policy's imageRegistries") as string,
  });
  expect(generate().code).toBe(0);
  expect(generate({ RECONSTRUCT_CONFIG: join(folder, 'reconstruct.config.mjs') }).stderr).toContain('run');
});

test('the sidecar mounts the plugin where it is looked for, runs as Argo CD wants it, and has its own /tmp', () => {
  const patch = read('gitops/argocd/repo-server-patch.yaml') as {
    readonly spec: {
      readonly template: {
        readonly spec: { readonly containers: readonly object[]; readonly volumes: readonly object[] };
      };
    };
  };
  const { containers, volumes } = patch.spec.template.spec;

  expect(plugin).toMatchObject({ apiVersion: 'argoproj.io/v1alpha1', kind: 'ConfigManagementPlugin' });
  expect(containers).toMatchObject([
    {
      command: ['/var/run/argocd/argocd-cmp-server'],
      securityContext: { runAsNonRoot: true, runAsUser: 999 },
      volumeMounts: [
        { name: 'var-files', mountPath: '/var/run/argocd' },
        { name: 'plugins', mountPath: '/home/argocd/cmp-server/plugins' },
        { mountPath: '/home/argocd/cmp-server/config/plugin.yaml', subPath: 'plugin.yaml' },
        { mountPath: '/tmp' },
      ],
    },
  ]);
  expect(volumes).toContainEqual({ name: 'reconstruct-tmp', emptyDir: {} });
  const application = read('examples/gitops/argocd/plugin.yaml') as {
    readonly spec: { readonly source: { readonly plugin: object } };
  };
  expect(application.spec.source.plugin).toMatchObject({
    name: `${plugin.metadata.name}-${plugin.spec.version}`,
  });
});
