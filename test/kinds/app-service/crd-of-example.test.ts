import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { kindsOnRequest } from '../../../src/cli/config.js';
import { servedType, storedVersion } from '../../../src/contract/crd.js';
import { appServiceOfExample } from '../../../src/kinds/app-service/example-group.js';
import { appService } from '../../../src/kinds/app-service/kind.js';
import { builtInKinds } from '../../../src/kinds/index.js';

const root = new URL('../../../', import.meta.url);

test('the CRD of app.example.com is what the script makes of that of kosmos.io', () => {
  const folder = mkdtempSync(join(tmpdir(), 'crds-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true });
  });
  const fresh = join(folder, 'crd.yaml');

  execFileSync(process.execPath, [fileURLToPath(new URL('scripts/crds.mjs', root)), fresh]);

  const committed = new URL('crds/appservices.app.example.com.yaml', root);
  expect(readFileSync(committed, 'utf8'), 'it is stale: run "npm run crds" and commit what it changes').toBe(
    readFileSync(fresh, 'utf8'),
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
