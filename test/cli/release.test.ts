import { afterEach, expect, test, vi } from 'vitest';
import { release, runRelease } from '../../src/cli/release.js';
import type { AnyObject } from '../../src/contract/object.js';
import { Api } from '../../src/client/api.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { anObject, failure } from '../engine/support/builders.js';
import { StoredServer } from './support/stored-server.js';

const RELEASE = 'reconstruct.kosmos.io/release';
const ROLLOUT = 'rollout.reconstruct.kosmos.io/appservice';

const held = (name: string, message: string, status = 'True', annotations = {}): AnyObject => ({
  ...anObject(appService.type, name, { namespace: 'shop', annotations, labels: { tier: name } }),
  status: { conditions: [{ type: 'UpdatePending', status, reason: 'RollsPods', message }] },
});
const rolls = (build: string): string =>
  `Build ${build}: Deployment web rolls its pods: .spec.template; ConfigMap a.b. is created. Held until it is edited`;

/** Returns a server with three custom resources, and a lease that has stopped a rollout; takes merge patches. */
function stored() {
  let conflicts = 1;
  const server: StoredServer = new StoredServer(
    [
      held('web', rolls('0a1b2c3d')),
      held('done', rolls('0a1b2c3d'), 'True', { [RELEASE]: '0a1b2c3d' }),
      held('under-way', 'Build 0a1b2c3d: it was ready before, and has to be again', 'False'),
      anObject(appService.type, 'plain', { namespace: 'shop' }),
      {
        ...{ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' },
        metadata: {
          ...{ name: 'reconstruct', namespace: 'ops' },
          annotations: { [ROLLOUT]: '0a1b2c3d stopped web is not ready: Pod\u001b', other: 'x stopped y' },
        },
      },
    ],
    ({ method, path, body }, all) => {
      const known = all.objects.get(path);
      if (method !== 'PATCH' || !known) return undefined;
      const { metadata } = body as AnyObject;
      // Another one writes at the same time.
      if (conflicts-- > 0) all.put({ ...known });
      if (metadata.resourceVersion !== all.objects.get(path)?.metadata.resourceVersion)
        return failure(409, 'Conflict', 'the object has been modified');
      const annotations = { ...known.metadata.annotations, ...metadata.annotations };
      return {
        status: 200,
        body: all.put({ ...known, metadata: { ...known.metadata, annotations } }),
      };
    },
  );
  const annotationsOf = (kind: string, name: string): unknown =>
    [...server.objects.values()].find((each) => each.kind === kind && each.metadata.name === name)?.metadata
      .annotations;
  const writes = (): number => server.requests.filter(({ method }) => method !== 'GET').length;
  return { server, annotationsOf, writes };
}

/** Runs it, and returns what it prints. */
async function released(
  server: StoredServer,
  options: Parameters<typeof release>[2],
  ...names: readonly string[]
): Promise<{ readonly out: string; readonly err: string }> {
  const printed = { out: '', err: '' };
  vi.spyOn(process.stdout, 'write').mockImplementation((text, done) => {
    printed.out += String(text);
    (done as unknown as () => void)();
    return true;
  });
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    printed.err += String(text);
    return true;
  });
  const targets =
    names.length > 0 ? names.map((name) => ({ kind: appService, name })) : [{ kind: appService }];
  try {
    await release(new Api(server), targets, options);
  } finally {
    vi.restoreAllMocks();
  }
  return printed;
}

afterEach(() => {
  vi.restoreAllMocks();
});

test('what is held is released with its build, also where it changes at the same time; nothing else is', async () => {
  const { server, annotationsOf, writes } = stored();
  const dry = await released(server, { namespace: 'shop', dryRun: true });
  const what =
    'released: build 0a1b2c3d: Deployment web rolls its pods: .spec.template; ConfigMap a.b. is created\n';
  expect(dry).toEqual({ out: `AppService shop/web would be ${what}`, err: '' });
  expect(writes()).toBe(0);

  expect(await released(server, { allNamespaces: true })).toEqual({
    ...{ out: `AppService shop/web ${what}`, err: '' },
  });
  expect(annotationsOf('AppService', 'web')).toEqual({ [RELEASE]: '0a1b2c3d' });
  expect(writes()).toBe(2);

  const again = await released(server, { namespace: 'shop' });
  expect(again).toEqual({ out: '', err: 'nothing to release: no update is held that waits for it\n' });
  expect(writes()).toBe(2);
});

test('one that is named says why it is not released; a name that there is not is refused', async () => {
  const { server, writes } = stored();
  const { out, err } = await released(server, { namespace: 'shop' }, 'done', 'under-way', 'plain');
  expect(out).toBe('');
  expect(err.split('\n')).toEqual([
    'AppService shop/done is released already, by 0a1b2c3d',
    'AppService shop/under-way: no update is held: Build 0a1b2c3d: it was ready before, and has to be again',
    'AppService shop/plain: no update is held',
    '',
  ]);
  await expect(released(server, { namespace: 'shop' }, 'web', 'don')).rejects.toThrow(
    'There is no AppService shop/don; did you mean done?',
  );
  expect(writes()).toBe(0);
});

test('a rollout that has stopped goes on, and says what had stopped it', async () => {
  const { server, annotationsOf, writes } = stored();
  const dry = await released(server, { resume: true, dryRun: true });
  const what = 'resumed: build 0a1b2c3d, which had stopped: web is not ready: Pod\\x1b\n';
  expect(dry).toEqual({ out: `Rollout of appservice would be ${what}`, err: '' });
  expect(writes()).toBe(0);
  expect(await released(server, { resume: true })).toEqual({ out: `Rollout of appservice ${what}`, err: '' });
  expect(annotationsOf('Lease', 'reconstruct')).toEqual({
    [ROLLOUT]: expect.stringMatching(/^0a1b2c3d resumed \d{4}-\d\d-\d\dT[\d:.]+Z$/) as string,
    other: 'x stopped y',
  });
  const again = await released(server, { resume: true });
  expect(again).toEqual({ out: '', err: 'Lease ops/reconstruct: no rollout has stopped\n' });
  await expect(released(server, { resume: true, operatorNamespace: 'shop' })).rejects.toThrow(
    'There is no Lease shop/reconstruct',
  );
});

test('nothing is released that was not chosen, and a rollout is not one of a custom resource', async () => {
  await expect(runRelease([], {})).rejects.toThrow(/^release which updates\? .* take all with -A;/);
  await expect(runRelease(['appsvc', 'web'], { resume: true })).rejects.toThrow(
    'appsvc web: a rollout is that of a kind: leave out the name, or --resume',
  );
});
