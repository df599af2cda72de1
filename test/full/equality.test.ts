import { hash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { parseAllDocuments, stringify } from 'yaml';
import { openSandbox } from '../../sandbox/client.js';
import { repoFolder } from '../../sandbox/paths.js';
import { APPLIED_HASH_ANNOTATION } from '../../src/contract/names.js';
import type { AnyObject, CustomResource } from '../../src/contract/object.js';
import { groupKind } from '../../src/contract/resource.js';
import { canonicalJson } from '../../src/contract/object.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { appServiceFields } from './support/app-service-fields.js';
import { Cluster } from './support/cluster.js';
import type { Place } from './support/cluster.js';
import { cdk8s, manifestsIn, reconstruct, withFolder } from './support/commands.js';
import { anyRoute } from './support/any-route.js';
import { startController } from './support/controller.js';
import type { RunningController } from './support/controller.js';
import { installCrd } from './support/crds.js';
import { withFixedNodePorts } from './support/node-ports.js';
import { appliedBy, asStored, withoutBookkeeping } from './support/owned-fields.js';
import { Subject } from './support/subject.js';

const examples = join(repoFolder(), 'examples');
const cluster = new Cluster(openSandbox(inject('sandbox')));
let apps: Subject;
let controller: RunningController;

beforeAll(async () => {
  await installCrd(cluster, appService);
  apps = new Subject(cluster, appService, await cluster.makeNamespace('equality'));
  const user = 'operator-10';
  controller = await startController({
    ...{ cluster, user, kinds: [appService], namespaces: [apps.namespace], args: anyRoute },
  });
});
afterAll(async () => {
  await controller.kill();
  await cluster.close();
});

function documentsOf<T>(text: string): T[] {
  return parseAllDocuments(text, { version: '1.1' }).map((document) => document.toJS() as T);
}

function exampleResources(): CustomResource[] {
  const files = readdirSync(examples).filter((name) => name.endsWith('.yaml'));
  return files.flatMap((name) => documentsOf<CustomResource>(readFileSync(join(examples, name), 'utf8')));
}

/** One custom resource for each field of the spec, as the tests of the fields have it. */
function resourcesForAllFields(): CustomResource[] {
  return appServiceFields
    .filter(({ refusedWith }) => refusedWith === undefined)
    .map(({ path, set, changed }, index) => ({
      ...{ apiVersion: appService.type.apiVersion, kind: appService.type.kind },
      metadata: { name: `field-${index}` },
      // A node port is there once in a cluster, and the other tests have theirs.
      spec: path === 'ports.[].nodePort' ? { ...set, ports: [{ port: 80, nodePort: 30_012 }] } : changed,
    }));
}

describe('cdk8s synth and reconstruct synth', () => {
  test('write the same files, byte for byte', async () => {
    await withFolder(async (folder) => {
      const [byCdk8s, byReconstruct] = [join(folder, 'cdk8s'), join(folder, 'reconstruct')];

      await cdk8s('synth', '--output', byCdk8s);
      await reconstruct('synth', 'examples/', '--output', byReconstruct);

      const files = await manifestsIn(byCdk8s);
      expect(files).toEqual(await manifestsIn(byReconstruct));
      expect(Object.keys(files)).toHaveLength(exampleResources().length);
    });
  });
});

describe('what the controller applies', () => {
  type Use = () => Promise<void>;
  const cases = [
    {
      what: 'the examples',
      resources: exampleResources(),
      hold: (use: Use) => withFixedNodePorts(cluster, use),
    },
    // Its node port is nobody else's.
    {
      what: 'custom resources with every field',
      resources: resourcesForAllFields(),
      hold: (use: Use) => use(),
    },
  ];

  test.for(cases)(
    'for $what is what reconstruct synth writes for them',
    { timeout: 600_000 },
    async ({ resources, hold }) => {
      const { namespace } = apps;
      const rendered = await withFolder(async (folder) => {
        const source = join(folder, 'resources.yaml');
        await writeFile(source, resources.map((resource) => `---\n${stringify(resource)}`).join(''));
        return documentsOf<AnyObject>(await reconstruct('synth', source, '--namespace', namespace));
      });
      expect(rendered.length).toBeGreaterThan(0);

      await hold(async () => {
        for (const { apiVersion, kind, metadata, spec } of resources)
          await cluster.create(appService.type, {
            ...{ apiVersion, kind, spec, metadata: { ...metadata, namespace } },
          });
        for (const { metadata } of resources) await apps.asRendered(metadata.name);

        for (const { metadata } of resources) await requireEqual(metadata.name, rendered);
        // Not left to the garbage collector, which takes its time with kinds that are new to it.
        for (const { metadata } of resources) await apps.delete(metadata.name);
        for (const object of rendered) await cluster.delete(placeOf(object), { mayBeMissing: true });
      });
    },
  );

  function placeOf(object: AnyObject): Place {
    const type = appService.children.find((child) => groupKind(child) === groupKind(object))!;
    return apps.childPlace(type, object.metadata.name);
  }

  /** Both ways: nothing that is rendered is missing, and nothing else was applied. */
  async function requireEqual(name: string, rendered: readonly AnyObject[]): Promise<void> {
    const cr = await apps.get(name);
    for (const type of appService.children) {
      const live = await apps.children(type, cr);
      const wanted = rendered.filter(({ kind, metadata }) => kind === type.kind && metadata.name === name);
      const applied = live.map((object) => appliedBy('appservice-controller', object));
      expect(applied.map(withoutBookkeeping)).toEqual(wanted.map(asStored));
      // The hash is of exactly what was rendered, before the API server stored it its own way.
      expect(applied.map(({ metadata }) => metadata.annotations)).toEqual(
        wanted.map((object) => ({ [APPLIED_HASH_ANNOTATION]: hashOf(object) })),
      );
      expect(applied.map(({ metadata }) => metadata.ownerReferences?.length)).toEqual(wanted.map(() => 1));
    }
  }
});

function hashOf(object: AnyObject): string {
  return hash('sha256', canonicalJson(object), 'hex').slice(0, 32);
}
