import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import { rulesFor } from '../../src/install/rules.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { Cluster, deployments, services } from './support/cluster.js';
import { startController } from './support/controller.js';
import type { RunningController } from './support/controller.js';
import { installCrd } from './support/crds.js';
import { actions, changedPaths, Differ } from './support/diff.js';
import { requestsFromNowOn, writes } from './support/requests.js';
import { grant } from './support/rights.js';
import { Subject } from './support/subject.js';

const user = 'operator-49';
const asker = 'operator-50';
const cluster = new Cluster(openSandbox(inject('sandbox')));
let apps: Subject;
let controller: RunningController;
let differ: Differ;

beforeAll(async () => {
  await installCrd(cluster, appService);
  apps = new Subject(cluster, appService, await cluster.makeNamespace('diff'));
  const namespaces = [apps.namespace];
  const ofAsker = {
    apiGroups: ['kosmos.io'],
    resources: ['appservices'],
    verbs: ['get', 'create', 'update'],
  };
  await grant(cluster, {
    user: asker,
    rules: [...rulesFor([appService]).filter(isNoneOfOperators), ofAsker],
    namespaces,
  });
  controller = await startController({ cluster, user, kinds: [appService], namespaces });
  differ = new Differ(cluster.sandbox.kubeconfig(asker), ['--kinds', 'appservice']);
});
afterAll(async () => {
  await controller.kill();
  await cluster.close();
});

/** Who asks need not be able to write a status, or to finalize. */
function isNoneOfOperators({ resources }: { readonly resources: readonly string[] }): boolean {
  return !resources.some(
    (resource) => resource.includes('/') || resource === 'pods' || resource === 'events',
  );
}

const web = { size: 1, image: 'example.com/web:1' };

function appServiceNamed(name: string, spec: object): object {
  const { apiVersion, kind } = appService.type;
  return { apiVersion, kind, metadata: { name, namespace: apps.namespace }, spec };
}

describe('a new custom resource', () => {
  test('is shown with all that it would make, and nothing of it is made', async () => {
    const requests = await requestsFromNowOn(cluster, asker);
    const found = await differ.json([appServiceNamed('new', { ...web, ports: [{ port: 80 }] })]);

    expect(found).toMatchObject({ code: 1, differs: true });
    expect(actions(found)).toEqual([
      'created AppService new',
      'created Deployment new',
      'created Service new',
    ]);
    expect(found.objects[1]!.object).toMatchObject({ spec: { replicas: 1 } });
    expect(await cluster.find(apps.place('new'))).toBeUndefined();
    expect(await cluster.find(apps.childPlace(deployments, 'new'))).toBeUndefined();
    const sent = writes(await requests());
    expect(sent.length).toBeGreaterThan(2);
    expect(sent.filter(({ uri }) => !uri.includes('dryRun=All'))).toEqual([]);
  });
});

describe('a settled custom resource', () => {
  test('differs in nothing, and nothing is printed; an edit shows what the controller then changes', async () => {
    const before = { ...web, ports: [{ port: 80 }] };
    await apps.create('settled', before);
    await apps.asRendered('settled');
    expect(await differ.of([appServiceNamed('settled', before)])).toEqual({
      code: 0,
      stdout: '',
      stderr: '',
    });

    const found = await differ.json([appServiceNamed('settled', { ...before, image: 'example.com/web:2' })]);
    expect(actions(found)).toEqual([
      'changed AppService settled',
      'changed Deployment settled',
      'unchanged Service settled',
    ]);
    expect(changedPaths(found)).toEqual([
      'AppService .spec.image',
      'Deployment .spec.template.spec.containers[name="settled"].image',
    ]);

    const pruned = await differ.json([appServiceNamed('settled', web)]);
    expect(actions(pruned)).toContain('deleted Service settled');
    expect(await cluster.find(apps.childPlace(services, 'settled'))).toBeDefined();
  });
});
