import { afterAll, expect, test } from 'vitest';
import { loadKind } from '../support/bundle.js';
import { configMaps, eventually } from '../support/cluster.js';
import { MountedFile } from '../support/mounted-file.js';
import { startController } from '../support/operator.js';
import type { RunningController } from '../support/operator.js';
import { Subject } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';

const user = 'operator-104';
const cluster = openCluster();
const file = new MountedFile('settings.yaml');
const { kind, config } = await loadKind('test/support/kinds/page.config.mjs');

afterAll(() => {
  file.remove();
});

test('settings are followed: a change reaches every custom resource, and what can not be used changes nothing', async () => {
  // GIVEN
  const pages = await Subject.make(cluster, kind, 'settings');
  const start = (args: readonly string[]): Promise<RunningController> =>
    startController({ cluster, user, kinds: [kind], config, namespaces: [pages.namespace], args });
  const says = async (domain: string, image: string): Promise<void> => {
    await eventually(async () => {
      const { data } = await cluster.get(pages.childPlace(configMaps, 'web'));
      expect(data).toEqual({ text: 'hello', host: `web.${domain}`, image });
      expect((await pages.get('web')).status).toMatchObject({ url: `https://web.${domain}` });
    });
    await pages.ready('web');
  };
  const missing = {
    reason: 'SettingsMissing',
    message: "the operator's settings lack page.domain, which Page needs; give it in the file of --settings",
  };
  const stalls = async (): Promise<void> => {
    await pages.condition('web', { type: 'Stalled', status: 'True', ...missing });
  };

  // WHEN no settings are given, and one is required
  await pages.create('web', { text: 'hello' });
  {
    await using controller = await start([]);
    await stalls();
    expect(await cluster.find(pages.childPlace(configMaps, 'web'))).toBeUndefined();
    expect(await controller.stop()).toBe(0);
  }

  // WHEN they are
  file.put('page: { domain: a.example.com }');
  {
    await using controller = await start(['--settings', file.path]);
    await says('a.example.com', 'nginx:1');

    file.put('page: { domain: b.example.com, proxy: { image: "nginx:2" } }');
    await says('b.example.com', 'nginx:2');
    expect(await controller.logged(({ msg }) => msg === 'settings changed and are in force')).toMatchObject({
      ...{ settings: file.path, kinds: ['page'] },
    });

    // WHEN they can't be used: by the schema, and since a required one goes
    let from = 0;
    for (const [text, error] of [
      ['page: { domain: 7 }', 'page.domain: 7'],
      ['{}', missing.message],
    ] as const) {
      file.put(text);
      const line = await controller.logged(({ msg }) => msg.startsWith('changed settings refused'), from);
      expect(line).toMatchObject({ level: 'error', errors: [expect.stringContaining(error)] });
      from = controller.log.indexOf(line) + 1;
    }
    await pages.touch('web');
    await says('b.example.com', 'nginx:2');
    expect(await controller.stop()).toBe(0);
  }

  // WHEN the operator starts with what it would have refused
  await using controller = await start(['--settings', file.path]);
  await stalls();
  expect(await cluster.get(pages.childPlace(configMaps, 'web'))).toMatchObject({
    data: { image: 'nginx:2' },
  });

  file.put('page: { domain: c.example.com }');
  await says('c.example.com', 'nginx:1');
  expect(controller.log.filter(({ msg }) => msg.includes('StatusFailed'))).toEqual([]);
});
