import { describe, expect, test } from 'vitest';
import { operatorsFor } from '../../../src/cli/status/operators.js';
import type { Source } from '../../../src/cli/status/source.js';
import type { AnyObject } from '../../../src/contract/object.js';
import { ApiError } from '../../../src/engine/api-error.js';
import { installManifests } from '../../../src/install/manifests.js';
import type { InstallProps } from '../../../src/install/props.js';
import { appService } from '../../../src/kinds/app-service/kind.js';
import { jobWatcher } from '../../../src/kinds/job-watcher/kind.js';
import { anObject, failure } from '../../engine/support/builders.js';

const now = new Date('2026-01-01T01:00:00Z');
const place = { kind: appService, namespace: 'shop' };
const forbidden = () => Promise.reject(new ApiError('List', failure(403, 'Forbidden', 'not you')));

function deployment(available: number, props: Partial<InstallProps> = {}): AnyObject {
  const all = { namespace: 'ops', image: 'reconstruct:1', kinds: [appService], replicas: 2, ...props };
  const found = installManifests(all).find(({ kind }) => kind === 'Deployment');
  return { ...found!, status: { availableReplicas: available } };
}

function lease(spec: object): AnyObject {
  return anObject(
    { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' },
    'reconstruct',
    { namespace: 'ops' },
    { spec },
  );
}

const held = lease({
  holderIdentity: 'pod-1',
  leaseDurationSeconds: 15,
  renewTime: '2026-01-01T00:59:58.000000Z',
});

/** One that knows label selectors. */
function sourceOf(objects: readonly AnyObject[]): Source {
  return {
    list: ({ type, selector = '' }) => {
      const wanted = selector.split(',').filter((part) => part !== '');
      const isWanted = ({ metadata: { labels = {} } }: AnyObject): boolean =>
        wanted.map((part) => part.split('=')).every(([name = '', value]) => labels[name] === value);
      return Promise.resolve(objects.filter((each) => each.kind === type.kind && isWanted(each)));
    },
  };
}

const notesOf = async (...objects: AnyObject[]) =>
  (await operatorsFor([place], sourceOf(objects), now)).notes;

test('an operator that is ready and leads is nothing to speak of', async () => {
  expect(await operatorsFor([place], sourceOf([deployment(2), held]), now)).toEqual({
    operators: [{ namespace: 'ops', available: 2, replicas: 2, leader: 'pod-1' }],
    unattended: [],
    notes: [],
  });
});

test('an operator that Helm has installed is seen', async () => {
  const { metadata, ...rest } = deployment(2);
  const labels = { ...metadata.labels, 'app.kubernetes.io/managed-by': 'Helm' };
  const helms = { ...rest, metadata: { ...metadata, labels } };
  expect(await notesOf(helms, held)).toEqual([]);
});

describe('it is told, with the command that mends it, that', () => {
  test('none is installed, or none for the kind, or not there', async () => {
    const none =
      /^No operator looks after AppService in shop: .*"reconstruct install --apply" and the options in use; /;
    const other = deployment(2, { kinds: [jobWatcher] });
    const elsewhere = deployment(2, { watchNamespaces: ['team'] });
    for (const objects of [[], [other], [elsewhere]])
      expect(await notesOf(...objects)).toEqual([expect.stringMatching(none)]);
  });

  test('it is not ready, or has no replicas', async () => {
    expect(await notesOf(deployment(0), held)).toEqual([
      expect.stringMatching(/^The operator in ops isn't ready.*"kubectl describe pods -n ops -l /),
    ]);
    expect(await notesOf(deployment(0, { replicas: 0 }), held)).toEqual([
      expect.stringMatching(/no replicas.*"kubectl scale deployment reconstruct -n ops --replicas 2"/),
    ]);
  });

  test.each([
    [
      'nobody holds its lease',
      { holderIdentity: '', leaseDurationSeconds: 1, renewTime: '2026-01-01T00:59:58Z' },
    ],
    [
      'its lease was renewed last at',
      { holderIdentity: 'x', leaseDurationSeconds: 15, renewTime: '2026-01-01T00:59:20Z' },
    ],
  ])('%s', async (said, spec) => {
    const [note, ...rest] = await notesOf(deployment(2), lease(spec));
    expect(rest).toEqual([]);
    expect(note).toContain(said);
    expect(note).toContain('"kubectl logs -n ops deployment/reconstruct"');
  });

  test('nobody may look for one', async () => {
    const { notes } = await operatorsFor([place], { list: forbidden }, now);
    expect(notes).toEqual([
      expect.stringMatching(/^Whether an operator is there can't be seen: the right to list/),
    ]);
  });
});

test('a lease that may not be read is nobody’s trouble', async () => {
  const source: Source = {
    list: ({ type }) => (type.kind === 'Lease' ? forbidden() : Promise.resolve([deployment(2)])),
  };
  expect(await operatorsFor([place], source, now)).toEqual({
    operators: [{ namespace: 'ops', available: 2, replicas: 2 }],
    unattended: [],
    notes: [],
  });
});

test('without custom resources, all operators are told of, and what is wrong with them', async () => {
  expect(await operatorsFor([], sourceOf([deployment(0), held]), now)).toMatchObject({
    operators: [{ namespace: 'ops', available: 0, replicas: 2, leader: 'pod-1' }],
    notes: [expect.stringMatching(/^The operator in ops isn't ready/)],
  });
  expect(await operatorsFor([], sourceOf([]), now)).toEqual({ operators: [], unattended: [], notes: [] });
  expect((await operatorsFor([], { list: forbidden }, now)).operators).toBeUndefined();
});

test('an operator that looks after others is told of, and its troubles are not', async () => {
  const other = deployment(0, { kinds: [jobWatcher] });
  const { operators, notes, unattended } = await operatorsFor([place], sourceOf([other, held]), now);
  expect(operators).toMatchObject([{ namespace: 'ops', available: 0 }]);
  expect(unattended).toEqual([place]);
  expect(notes).toEqual([expect.stringMatching(/^No operator looks after AppService/)]);
});
