import { describe, expect, it } from 'vitest';
import type { AnyObject } from '../../src/contract/object.js';
import { DEPLOYMENT, ownedBy, widget, WIDGET } from './support/builders.js';
import { deployment, newSetup, settledSetup, step } from './support/apply-setup.js';
import type { Setup } from './support/apply-setup.js';

/** A settled child that has gone, and whose owner is still believed to be there. */
async function vanished(owner?: string): Promise<Setup> {
  const setup = await settledSetup();
  const { server, reader } = setup;
  server.remove(WIDGET, 'shop/web');
  if (owner !== undefined)
    server.put(WIDGET, {
      ...widget('web'),
      metadata: { ...widget('web').metadata, uid: owner },
    });
  reader.store(WIDGET).observed({
    ...widget('web'),
    metadata: { ...widget('web').metadata, resourceVersion: '1' },
  });
  const live = server.get(DEPLOYMENT, 'shop/web')!;
  server.remove(DEPLOYMENT, 'shop/web');
  reader
    .store(DEPLOYMENT)
    .observedDeletion({ ...live, metadata: { ...live.metadata, resourceVersion: '900' } });
  server.requests.length = 0;
  return setup;
}

const methods = ({ server }: Setup): string[] => server.requests.map(({ method }) => method);

describe('Applier, a child that has gone', () => {
  it('is made anew once its owner was seen to be there', async () => {
    const setup = await vanished('uid-web');
    expect(await setup.apply()).toMatchObject({ action: 'created' });
    expect(methods(setup)).toEqual(['GET', 'PATCH']);
  });

  it.each([
    ['has gone too', undefined],
    ['was replaced by a namesake', 'uid-other'],
  ])('is left to the garbage collector when its owner %s, and the store knows of it', async (_, owner) => {
    const setup = await vanished(owner);
    expect(await setup.apply()).toMatchObject({
      action: 'failed',
      error: { reason: 'OwnerGone', retry: 'now' },
    });
    expect(methods(setup)).toEqual(['GET']);
    expect(setup.reader.get(WIDGET, 'shop/web')?.metadata.uid).toBe(owner);
  });

  it('is not made of a plan that was made from another generation of its owner', async () => {
    const setup = await vanished('uid-web');
    const restored = { ...widget('web'), metadata: { ...widget('web').metadata, generation: 7 } };
    setup.server.put(WIDGET, restored);
    expect(await setup.apply()).toMatchObject({
      action: 'failed',
      error: { reason: 'Conflict', retry: 'now' },
    });
    expect(methods(setup)).toEqual(['GET']);
    expect(setup.reader.get(WIDGET, 'shop/web')?.metadata.generation).toBe(7);
    expect(await setup.apply()).toMatchObject({ action: 'created' });
  });

  it('is one of many: their owners are listed once, and not read one by one', async () => {
    const setup = newSetup();
    const { server, reader } = setup;
    const names = Array.from({ length: 40 }, (_, n) => `w${n}`);
    const of = (name: string): AnyObject => ({
      ...deployment(),
      metadata: { ...deployment().metadata, name },
    });
    for (const name of names) {
      reader.store(WIDGET).observed(server.put(WIDGET, widget(name)));
      await setup.apply(step(of(name), ownedBy(name)));
    }
    for (const name of names) {
      const live = server.get(DEPLOYMENT, `shop/${name}`)!;
      server.remove(DEPLOYMENT, `shop/${name}`);
      reader.store(DEPLOYMENT).gone(`shop/${name}`, live.metadata.uid);
    }
    server.requests.length = 0;
    const items = names.map((name) => ({ metadata: widget(name).metadata }));
    server.intercept = ({ path }) =>
      path.endsWith('/widgets')
        ? { status: 200, body: { metadata: { resourceVersion: '9' }, items } }
        : undefined;
    const changes = await Promise.all(names.map((name) => setup.apply(step(of(name), ownedBy(name)))));
    expect(new Set(changes.map(({ action }) => action))).toEqual(new Set(['created']));
    const reads = methods(setup).filter((method) => method === 'GET').length;
    expect(reads).toBe(1);
  });
});
