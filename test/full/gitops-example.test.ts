import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { repoFolder } from '../../sandbox/paths.js';
import type { AnyObject } from '../../src/contract/object.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { installCrd, namespaceType } from '../support/cluster.js';
import { commandPath, goTool, manifestsIn, run } from '../support/commands.js';
import type { Ran } from '../support/commands.js';
import { openCluster } from '../support/test-clusters.js';

const EXAMPLE = join(repoFolder(), 'examples/gitops');
const cluster = openCluster();
/** The example as it is checked out somewhere. */
let folder: string;
let kustomize: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'gitops-'));
  await cp(EXAMPLE, folder, { recursive: true });
  kustomize = await goTool('kustomize');
  await installCrd(cluster, appService);
});

afterAll(async () => {
  await rm(folder, { recursive: true });
});

/** Runs a program in the example, which finds nothing of its user's. */
async function ran(file: string, args: readonly string[]): Promise<Ran> {
  return run(file, args, {
    cwd: folder,
    env: { PATH: commandPath(cluster.sandbox.kubectlPath), HOME: folder },
  });
}

const FUNCTIONS = ['--enable-alpha-plugins', '--enable-exec'];

const objectsOf = (text: string): AnyObject[] =>
  parseAllDocuments(text).map((document) => document.toJS() as AnyObject);

const inOrder = (objects: readonly AnyObject[]): AnyObject[] =>
  [...objects].sort((a, b) => (`${a.kind} ${a.metadata.name}` < `${b.kind} ${b.metadata.name}` ? -1 : 1));

async function committed(overlay: string): Promise<string> {
  return Object.values(await manifestsIn(join(EXAMPLE, 'rendered', overlay))).join('');
}

describe.each(['dev', 'prod'])('the overlay %s', (overlay) => {
  test('is rendered to what is committed', async () => {
    await rm(join(folder, 'rendered', overlay), { recursive: true });

    const { code, stderr } = await ran('sh', ['render.sh']);
    expect(code, stderr).toBe(0);
    expect(stderr).toMatch(/^(?:\d+ files? written to rendered\/\w+(?:, \d+ unchanged)?\n){2}$/);

    expect(await manifestsIn(join(folder, 'rendered', overlay))).toEqual(
      await manifestsIn(join(EXAMPLE, 'rendered', overlay)),
    );
  });

  test('is taken by the API server, as custom resources and rendered', async () => {
    const name = `shop-${overlay}`;
    await cluster.create(namespaceType, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    const dryRun = ['apply', '--server-side', '--dry-run=server', '--validate=strict'];

    const { stdout } = await cluster.sandbox.kubectl([...dryRun, '-k', join(EXAMPLE, 'overlays', overlay)]);
    const rendered = await cluster.sandbox.kubectl([...dryRun, '-f', join(EXAMPLE, 'rendered', overlay)]);

    expect(stdout.match(/^appservice\.kosmos\.io\/\S+ serverside-applied/gm)).toHaveLength(2);
    expect(rendered.stdout.match(/ serverside-applied/g)).toHaveLength(4);
  });
});

describe('kustomize', () => {
  test('renders an overlay through the function as the command does', async () => {
    const { code, stdout, stderr } = await ran(kustomize, ['build', ...FUNCTIONS, 'function']);

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(inOrder(objectsOf(stdout))).toEqual(inOrder(objectsOf(await committed('prod'))));
  });

  test('fails with what the policy refuses', async () => {
    const file = join(folder, 'function/render.yaml');
    const text = await readFile(file, 'utf8');
    await writeFile(file, text.replace('maxSize: 10', 'maxSize: 2'));

    const { code, stdout, stderr } = await ran(kustomize, ['build', ...FUNCTIONS, 'function']);

    await writeFile(file, text);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain(
      "AppService shop-prod/web: spec.size: 3 is more than the policy's maxSize, 2; give 2 or less",
    );
  });

  test('takes a custom resource as a generator', async () => {
    const generator = join(folder, 'generator');
    await cp(join(folder, 'function'), generator, { recursive: true });
    const web = parse(await readFile(join(folder, 'apps/web.yaml'), 'utf8')) as AnyObject;
    const annotations = { 'config.kubernetes.io/function': 'exec: { path: ./reconstruct-fn }' };
    await writeFile(
      join(generator, 'web.yaml'),
      stringify({ ...web, metadata: { ...web.metadata, annotations } }),
    );
    await writeFile(join(generator, 'kustomization.yaml'), 'generators: [web.yaml]\n');

    const { code, stdout, stderr } = await ran(kustomize, ['build', ...FUNCTIONS, 'generator']);

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(objectsOf(stdout).map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toEqual([
      'Service web',
      'Deployment web',
    ]);
  });
});

test('run in place, as kpt does it, the function keeps its sources, their comments, and its own files up to date', async () => {
  // GIVEN
  const place = join(folder, 'in-place');
  await mkdir(join(place, 'apps'), { recursive: true });
  const source = (size: number, ports: string): string =>
    `# Why it is here.
apiVersion: kosmos.io/v1
kind: AppService
metadata:
  name: web
  namespace: shop
  annotations:
    config.kubernetes.io/local-config: 'true'
spec:
  size: ${size} # how many
  image: nginx
${ports}`;
  const file = join(place, 'apps/web.yaml');
  const render = (): Promise<Ran> =>
    ran(kustomize, [
      'fn',
      'run',
      place,
      '--enable-exec',
      '--exec-path',
      join(folder, 'function/reconstruct-fn'),
    ]);
  await writeFile(file, source(1, '  ports:\n  - port: 80\n'));

  // WHEN
  expect(await render()).toMatchObject({ code: 0, stderr: '' });

  // THEN
  const rendered = 'shop.appservice.kosmos.io.web.yaml';
  const first = await manifestsIn(join(place, 'apps'));
  expect(first['web.yaml']).toBe(source(1, '  ports:\n  - port: 80\n'));
  expect(Object.keys(first)).toEqual([rendered, 'web.yaml']);
  expect(objectsOf(first[rendered]!).map(({ kind }) => kind)).toEqual(['Deployment', 'Service']);

  // WHEN
  await render();

  // THEN
  expect(await manifestsIn(join(place, 'apps'))).toEqual(first);

  // WHEN
  await writeFile(file, source(2, ''));
  await render();

  // THEN
  const [deployment, ...others] = objectsOf((await manifestsIn(join(place, 'apps')))[rendered]!);
  expect(deployment).toMatchObject({ kind: 'Deployment', spec: { replicas: 2 } });
  expect(others).toEqual([]);
});
