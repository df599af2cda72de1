import { hash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { parseAllDocuments, stringify } from 'yaml';
import { APPLIED_HASH_ANNOTATION } from '../../src/contract/names.js';
import { canonicalJson } from '../../src/values/json.js';
import type { AnyObject } from '../../src/contract/object.js';
import { groupKind } from '../../src/contract/resource.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { specsWithEveryField } from '../support/app-service-specs.js';
import { inBatches, withFixedNodePorts } from '../support/cluster.js';
import { cdk8s, manifestsIn, reconstruct, withFolder } from '../support/commands.js';
import { examplesFolder } from '../support/examples.js';
import { anyRoute, startController } from '../support/operator.js';
import { appliedBy, asStored, Subject, withoutBookkeeping } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';

const cluster = openCluster();
let apps: Subject;

beforeAll(async () => {
  apps = await Subject.make(cluster, appService, 'equality');
  await startController({
    ...{ cluster, user: 'operator-10', kinds: [appService], namespaces: [apps.namespace], args: anyRoute },
  });
});

function documentsOf(text: string): AnyObject[] {
  return parseAllDocuments(text, { version: '1.1' }).map((document) => document.toJS() as AnyObject);
}

const examples = readdirSync(examplesFolder)
  .filter((name) => name.endsWith('.yaml'))
  .flatMap((name) => documentsOf(readFileSync(join(examplesFolder, name), 'utf8')));

const withEveryField = (await specsWithEveryField()).map((spec, index) => ({
  ...{ apiVersion: appService.type.apiVersion, kind: appService.type.kind, spec },
  metadata: { name: `field-${index}` },
}));

test('write the same files, byte for byte', async () => {
  await withFolder(async (folder) => {
    const [byCdk8s, byReconstruct] = [join(folder, 'cdk8s'), join(folder, 'reconstruct')];

    await cdk8s('synth', '--output', byCdk8s);
    await reconstruct('synth', 'examples/', '--output', byReconstruct);

    const files = await manifestsIn(byCdk8s);
    expect(files).toEqual(await manifestsIn(byReconstruct));
    expect(Object.keys(files)).toHaveLength(examples.length);
  });
});

test.for([
  {
    what: 'the examples',
    resources: examples,
    hold: (use: () => Promise<void>) => withFixedNodePorts(cluster, use),
  },
  // Its node ports are no other test's.
  {
    what: 'custom resources with every field',
    resources: withEveryField,
    hold: (use: () => Promise<void>) => use(),
  },
])(
  'what a controller applies is what reconstruct synth writes: $what',
  { timeout: 600_000 },
  async ({ resources, hold }) => {
    const { namespace } = apps;
    const rendered = await withFolder(async (folder) => {
      const source = join(folder, 'resources.yaml');
      await writeFile(source, resources.map((resource) => `---\n${stringify(resource)}`).join(''));
      return documentsOf(await reconstruct('synth', source, '--namespace', namespace, ...anyRoute));
    });
    expect(rendered.length).toBeGreaterThan(0);

    await hold(async () => {
      await inBatches(resources, ({ metadata, ...resource }) =>
        cluster.create(appService.type, { ...resource, metadata: { ...metadata, namespace } }),
      );
      for (const { metadata } of resources) await apps.asRendered(metadata.name);

      for (const { metadata } of resources) await requireEqual(metadata.name, rendered);
      // Not left to the garbage collector, which takes its time with kinds that are new to it.
      for (const { metadata } of resources) await apps.delete(metadata.name);
      for (const object of rendered) {
        const type = appService.children.find((child) => groupKind(child) === groupKind(object))!;
        await cluster.delete(apps.childPlace(type, object.metadata.name), { mayBeMissing: true });
      }
    });
  },
);

/** Both ways: nothing that is rendered is missing, and nothing else was applied. */
async function requireEqual(name: string, rendered: readonly AnyObject[]): Promise<void> {
  const cr = await apps.get(name);
  for (const type of appService.children) {
    const live = await apps.children(type, cr);
    const wanted = rendered.filter(({ kind, metadata }) => kind === type.kind && metadata.name === name);
    const applied = live.map((object) => appliedBy('appservice-controller', object));
    expect(applied.map((object, index) => withoutBookkeeping(object, wanted[index]!))).toEqual(
      wanted.map(asStored),
    );
    // The hash is of exactly what was rendered, before the API server stored it its own way.
    expect(applied.map(({ metadata }) => metadata.annotations)).toEqual(
      wanted.map((object) => ({
        [APPLIED_HASH_ANNOTATION]: `${hash('sha256', canonicalJson(object), 'hex').slice(0, 32)} ${cr.metadata.uid}`,
      })),
    );
    expect(applied.map(({ metadata }) => metadata.ownerReferences?.length)).toEqual(wanted.map(() => 1));
  }
}
