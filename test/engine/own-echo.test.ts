import { describe, expect, it, vi } from 'vitest';
import type { AnyObject } from '../../src/contract/object.js';
import { Store } from '../../src/engine/cache.js';
import { newSetup } from './support/apply-setup.js';
import { newBench } from './support/bench.js';
import { configMap, DEPLOYMENT, STATUS_MANAGER, widget, WIDGET } from './support/builders.js';
import { FakeApiServer } from './support/fake-api-server.js';

describe('What an own write returns', () => {
  it('is digested once, and not at all when the watch delivers it too', async () => {
    const { apply, sync, reader } = newSetup();
    const digests = vi.spyOn(reader.store(DEPLOYMENT).paths, 'owned');

    await apply();
    expect(digests).toHaveBeenCalledTimes(1);
    sync();

    expect(digests).toHaveBeenCalledTimes(1);
  });

  it('is digested once for a status, too', async () => {
    const { server, reader, tools } = newBench(new FakeApiServer());
    const store = reader.store(WIDGET);
    const target = widget('web');
    store.observed(server.put(WIDGET, target as unknown as AnyObject));
    const digests = vi.spyOn(store.paths, 'owned');
    const expectations = vi.spyOn(store.paths, 'expected');

    const step = { target, fieldManager: STATUS_MANAGER, status: () => ({ replicas: 1 }) };
    await tools.statusWriter.write(step, [], reader);
    store.observed(server.get(WIDGET, 'shop/web')!);

    expect(digests).toHaveBeenCalledTimes(1);
    // Before the first write nothing is ours, so there is nothing to compare.
    expect(expectations).toHaveBeenCalledTimes(1);
  });

  it('is projected once, whichever is faster, the watch or the answer', async () => {
    const keep = vi.fn((object: AnyObject) => object);
    const store = new Store({ keep });
    const answer = { object: configMap('a', '2') };
    const write = async (send: () => void): Promise<unknown> =>
      store.write('shop/a', { listener: undefined }, () => {
        send();
        return Promise.resolve(answer);
      });

    await write(() => {
      store.observed(answer.object);
    });
    expect(keep).toHaveBeenCalledTimes(1);
    store.observed(answer.object);

    expect(keep).toHaveBeenCalledTimes(1);
  });
});
