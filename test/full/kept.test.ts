import { expect, test } from 'vitest';
import { ADOPT_BY_ANNOTATION } from '../../src/contract/names.js';
import { controllerOf } from '../../src/contract/object.js';
import { isAppliedBy, managedFieldsOf } from '../../src/values/projections.js';
import { loadKind } from '../support/bundle.js';
import { configMaps, eventually } from '../support/cluster.js';
import { startController } from '../support/operator.js';
import { settled } from '../support/requests.js';
import { Subject } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';

const cluster = openCluster();

/** Works as one release of the kind until it is told to end. */
async function release(
  onDelete: 'keep' | 'delete',
  work: (keepers: Subject) => Promise<void>,
): Promise<void> {
  const { kind, config } = await loadKind(`test/support/kinds/keeper-${onDelete}.config.mjs`);
  subject ??= await Subject.make(cluster, kind, 'kept');
  const props = { cluster, user: 'operator-76', kinds: [kind], config, namespaces: [subject.namespace] };
  await using controller = await startController(props);
  await work(subject);
  expect(await controller.stop()).toBe(0);
}

let subject: Subject | undefined;

test('a child that is kept outlives its custom resource, and is handed over to the next; the option comes and goes', async () => {
  const child = async () => cluster.get(subject!.childPlace(configMaps, 'web'));
  let uid: string | undefined;

  await release('delete', async (keepers) => {
    await keepers.create('web', {});
    await keepers.ready('web');
    ({ uid } = (await child()).metadata);
    expect(controllerOf(await child())).toBeDefined();
  });

  await release('keep', async (keepers) => {
    await eventually(async () => {
      expect(controllerOf(await child())).toBeUndefined();
    });
    await cluster.merge(keepers.childPlace(configMaps, 'web'), { data: { value: 'changed', more: 'x' } });
    await eventually(async () => {
      expect((await child()).data).toEqual({ value: 'a', more: 'x' });
    });
    await keepers.delete('web');
    await settled(cluster, 'operator-76');
    expect((await child()).metadata.uid).toBe(uid);

    await keepers.create('web', { value: 'b' });
    const { message } = await keepers.stalled('web', 'OwnershipConflict');
    expect(message).toContain('ConfigMap');
    expect((await child()).data).toEqual({ value: 'a', more: 'x' });
    const annotations = { [ADOPT_BY_ANNOTATION]: 'Keeper/web' };
    await cluster.merge(keepers.childPlace(configMaps, 'web'), { metadata: { annotations } });
    await keepers.ready('web');
    const live = await child();
    expect(live.metadata.uid).toBe(uid);
    // What kubectl had added goes, as with every adoption.
    expect(live.data).toEqual({ value: 'b' });
    const own = managedFieldsOf(live).filter((entry) => isAppliedBy(entry.manager ?? '', entry));
    expect(own.map(({ manager }) => manager)).toEqual([expect.stringMatching(/^keeper-controller:/)]);
  });

  await release('delete', async (keepers) => {
    await eventually(async () => {
      expect(controllerOf(await child())?.name).toBe('web');
    });
    const own = managedFieldsOf(await child()).filter((entry) => isAppliedBy(entry.manager ?? '', entry));
    expect(own.map(({ manager }) => manager)).toEqual(['keeper-controller']);
    await keepers.delete('web');
    await eventually(async () => {
      expect(await cluster.find(keepers.childPlace(configMaps, 'web'))).toBeUndefined();
    });
  });
});
