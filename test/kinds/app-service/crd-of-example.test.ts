import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { appExampleCrd } from '../../../scripts/crds.mjs';
import { servedType, storedVersion } from '../../../src/contract/crd.js';
import { appServiceOfExample } from '../../../src/kinds/app-service/example-group.js';
import { appService } from '../../../src/kinds/app-service/kind.js';
import { builtInKinds, kindsOnRequest } from '../../../src/kinds/index.js';

const read = (group: string): string =>
  readFileSync(new URL(`../../../crds/appservices.${group}.yaml`, import.meta.url), 'utf8');

test('the CRD of app.example.com is what the script makes of that of kosmos.io', () => {
  expect(read('app.example.com'), 'it is stale: run "npm run crds" and commit what it changes').toBe(
    appExampleCrd(read('kosmos.io')),
  );
});

test('it has both versions, with the very fields of kosmos.io, and no name that would be ambiguous', () => {
  const { crd } = appServiceOfExample;
  const original = storedVersion(appService.crd);

  expect(crd.spec.names).toEqual({
    ...{ kind: 'AppService', listKind: 'AppServiceList', plural: 'appservices', singular: 'appservice' },
  });
  expect(crd.spec.versions).toEqual([
    { ...original, name: 'v1', served: true, storage: true },
    {
      ...{ ...original, name: 'v1alpha1', served: true, storage: false, deprecated: true },
      deprecationWarning: expect.stringContaining('use app.example.com/v1') as string,
    },
  ]);
});

test('the kind is the same but for its group, and comes on request only', async () => {
  const { children, construct } = appService;

  expect(appServiceOfExample).toMatchObject({ name: 'appservice', children, construct });
  expect(appServiceOfExample.type).toEqual(
    servedType(appServiceOfExample.crd, storedVersion(appServiceOfExample.crd)),
  );
  expect(appServiceOfExample.type.apiVersion).toBe('app.example.com/v1');
  expect(builtInKinds).not.toContain(appServiceOfExample);
  expect(await kindsOnRequest['appservice.app.example.com']!()).toBe(appServiceOfExample);
});
