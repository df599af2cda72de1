import { expect, test } from 'vitest';
import { operatorFinder } from '../../../src/cli/apply/operator-finder.js';
import type { Given } from '../../../src/cli/diff/compare.js';
import { OperatorError } from '../../../src/contract/error.js';
import type { AnyObject } from '../../../src/contract/object.js';
import { installManifests } from '../../../src/install/manifests.js';
import { appService } from '../../../src/kinds/app-service/kind.js';
import { anObject } from '../../engine/support/builders.js';

const installed = installManifests({
  namespace: 'ops',
  image: 'reconstruct:1',
  kinds: [appService],
  replicas: 1,
});
const deployment = installed.find(({ kind }) => kind === 'Deployment')!;
const app = (status?: object): AnyObject =>
  anObject(appService.type, 'web', { uid: 'u' }, { spec: {}, ...(status && { status }) });
const given = (before?: AnyObject) =>
  ({ input: { kind: appService }, after: app(), ...(before && { before }) }) as unknown as Given;

const forbidden = () => Promise.reject(new OperatorError({ reason: 'Forbidden', message: 'not you' }));
const unseeable = { find: forbidden, list: forbidden };
const clusterOf = (...objects: AnyObject[]) => ({
  find: () => Promise.resolve(objects[0]),
  list: () => Promise.resolve(objects),
});

function finder(cluster: ReturnType<typeof clusterOf> | typeof unseeable, operatorNamespace?: string) {
  const warnings: string[] = [];
  const warn = (line: string): void => void warnings.push(line);
  const props = { cluster, warn, ...(operatorNamespace !== undefined && { operatorNamespace }) };
  return { find: operatorFinder(props), warnings };
}

test('an operator that is installed is found, and where none is there is none', async () => {
  expect(await finder(clusterOf(deployment)).find(given())).toMatchObject({ namespace: 'ops' });
  const { find, warnings } = finder(clusterOf());
  expect([await find(given()), warnings]).toEqual([undefined, []]);
});

test('that the namespace which is named has none is a warning', async () => {
  const { find, warnings } = finder(clusterOf(), 'ops');
  expect(await find(given())).toBeUndefined();
  expect(warnings).toEqual(['There is no operator in ops: what is made of these is applied here']);
});

test('where nobody may look, none is assumed for what none has looked at, with one warning', async () => {
  const { find, warnings } = finder(unseeable);
  for (const before of [undefined, app(), app({ observedGeneration: -1 })])
    expect(await find(given(before))).toBeUndefined();
  expect(warnings).toEqual([expect.stringContaining("can't be seen (not you)")]);
});

test.each([{ observedGeneration: 0 }, { conditions: [{ type: 'Ready' }] }])(
  'where nobody may look, one with the status %j is refused, with what to do',
  async (status) => {
    await expect(finder(unseeable).find(given(app(status)))).rejects.toMatchObject({
      exitCode: 3,
      message: expect.stringMatching(
        /^AppService shop\/web: .*--operator-namespace.*\nNothing was written$/s,
      ) as string,
    });
  },
);
