import childProcess from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Helm, Include } from 'cdk8s';
import { Construct } from 'constructs';
import { afterEach, expect, test, vi } from 'vitest';
import { loadKinds } from '../../src/cli/config.js';
import { defineCrd } from '../../src/author/define-crd.js';
import { defineKind } from '../../src/author/define-kind.js';
import type { OwnedKind } from '../../src/contract/kind.js';
import type { AnyObject } from '../../src/contract/object.js';
import { keepStatus } from '../../src/values/projections.js';
import { dependencyReadiness } from '../../src/values/readiness.js';
import { groupKind } from '../../src/contract/resource.js';
import { render } from '../../src/render/renderer.js';
import { exampleDocument, examplesFolder } from '../support/examples.js';

const folder = join(examplesFolder, 'composition');
const kinds = await loadKinds({ config: join(folder, 'reconstruct.config.mjs'), builtIn: [] });
const cache = kinds.find(({ name }) => name === 'cache') as OwnedKind;
const children = cache.children;

/** A kind whose construct gets its objects from elsewhere. */
function including(include: (scope: Construct) => Construct): OwnedKind {
  class Included extends Construct {
    constructor(scope: Construct, id: string) {
      super(scope, id);
      include(this);
    }
  }
  const spec = { type: 'object', properties: {} } as const;
  const crd = defineCrd({ group: 'apps.example.com', kind: 'Included', description: 'Any.', spec });
  return defineKind({ crd, construct: Included, children });
}

function rendered(kind: OwnedKind): readonly string[] {
  const { apiVersion } = kind.type;
  const metadata = { name: 'web', namespace: 'shop', uid: 'u' };
  const objects = render(kind, { apiVersion, kind: kind.type.kind, metadata, spec: {} });
  return objects.map((object) => `${object.kind} ${object.metadata.name}`);
}

/** Returns an object with the status of a file in `others/`, as the kind whose child it is keeps it. */
function written(file: string): AnyObject {
  const object = exampleDocument(`composition/others/${file}.yaml`);
  const live = { ...object, metadata: { ...object.metadata, namespace: 'shop', generation: 1 } };
  const watches = kinds.flatMap((kind) => kind.controllers({ render })).flatMap((one) => one.watches);
  const { keep = keepStatus } = watches.find(({ type }) => groupKind(type) === groupKind(object))!;
  return keep(live)!;
}

test.each([
  ['broker-failed', 'failing', 'InstallFailed'],
  ['broker-ready', 'ready', 'Available'],
  ['database-starting', 'progressing', 'RollingOut'],
  ['database-ready', 'ready', 'Available'],
  ['keys-missing', 'failing', 'SecretSyncedError'],
  ['keys-ready', 'ready', 'Available'],
  ['manifests-degraded', 'failing', 'Degraded'],
  ['manifests-healthy', 'ready', 'Available'],
])('what another operator writes counts: %s is %s', (file, phase, reason) => {
  expect(dependencyReadiness(written(file))).toMatchObject({ phase, reason });
});

test('an Application without a condition Ready is never ready for what waits, or too early', () => {
  const healthy = exampleDocument('composition/others/manifests-healthy.yaml');
  const conditions = [{ type: 'ComparisonError', message: 'repository not found' }];
  expect(dependencyReadiness(healthy)).toMatchObject({ reason: 'NotObserved' });
  expect(dependencyReadiness({ ...healthy, status: { conditions } })).toMatchObject({ phase: 'ready' });
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

test('cdk8s Include starts a process for each rendering, and a file that is parsed once does not', () => {
  const include = including((scope) => new Include(scope, 'Chart', { url: join(folder, 'chart.yaml') }));
  const started = vi.spyOn(childProcess, 'execFileSync');

  expect(rendered(cache)).toEqual(['Service web-cache', 'StatefulSet web-cache']);
  expect(started).toHaveBeenCalledTimes(0);
  expect(rendered(include)).toEqual(['Service release-name-cache', 'StatefulSet release-name-cache']);
  started.mockClear();
  rendered(include);
  expect(started).toHaveBeenCalledTimes(1);
});

test('cdk8s Helm needs its program where it is rendered, and leaves a folder each time', () => {
  const temporary = mkdtempSync(join(tmpdir(), 'composition-'));
  vi.stubEnv('TMPDIR', temporary);
  const helm = including((scope) => new Helm(scope, 'Chart', { chart: 'any', helmExecutable: 'no-helm' }));

  expect(() => rendered(helm)).toThrow(/Included shop\/web can't be rendered: unable to execute 'no-helm'/);
  expect(readdirSync(temporary)).toEqual([expect.stringMatching(/^cdk8s-helm-/)]);
  rmSync(temporary, { recursive: true });
});
