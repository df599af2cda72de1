import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { expect, test } from 'vitest';
import { defineCrd } from '../../src/author/define-crd.js';
import { defineKind } from '../../src/author/define-kind.js';
import { APPLY } from '../../src/client/api.js';
import { contentHash } from '../../src/values/json.js';
import { APPLIED_HASH_ANNOTATION } from '../../src/contract/names.js';
import type { AnyObject, CustomResource } from '../../src/contract/object.js';
import { renderingOf, WriteAudit } from '../../src/testing/audit.js';
import type { AuditedTrial } from '../../src/testing/audit.js';
import type { Cluster } from '../../src/testing/cluster.js';
import { testedKind } from '../../src/testing/tested-kind.js';
import type { MakeSurroundings } from '../../src/testing/tested-kind.js';

class Pair extends Construct {
  constructor(scope: Construct, id: string, { references }: { readonly references: { server: AnyObject } }) {
    super(scope, id);
    const annotations = { version: String(references.server.metadata.labels?.version) };
    const set = new ApiObject(this, 'Set', {
      ...{ apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { name: 'set', annotations } },
      spec: { replicas: 1 },
    });
    const job = new ApiObject(this, 'Job', {
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { name: 'job' },
    });
    job.addDependency(set);
  }
}

const kind = defineKind({
  crd: defineCrd({
    ...{ group: 'example.com', kind: 'Pair', description: 'A set, and a Job after it.' },
    spec: { type: 'object' },
  }),
  references: { server: { apiVersion: 'v1', kind: 'ConfigMap', name: () => 'server' } },
  children: [
    { apiVersion: 'apps/v1', kind: 'StatefulSet' },
    { apiVersion: 'batch/v1', kind: 'Job' },
  ],
  construct: Pair,
});

const metadata = { name: 'pair', namespace: 'shop', uid: 'pair-uid' };
const cr: CustomResource = { apiVersion: 'example.com/v1', kind: 'Pair', metadata, spec: {} };

const serverOf = (version: number, namespace = 'shop'): AnyObject => {
  const labels = { version: String(version) };
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'server', namespace, labels } };
};
const surroundings: MakeSurroundings = ({ namespace }) => ({ objects: [serverOf(1, namespace)] });

/** A custom resource whose operator applies what is rendered of a version of what it refers to. */
class Stage {
  version = 1;
  readonly live = new Map<string, AnyObject>();
  readonly audit: WriteAudit;
  private readonly trial: AuditedTrial;

  constructor() {
    const cluster = { find: () => Promise.resolve(cr) } as unknown as Cluster;
    this.trial = {
      run: { ...testedKind(kind, [{ spec: {} }], surroundings), cluster },
      place: (name = '') => ({ type: kind.type, namespace: 'shop', name }),
      list: () => Promise.resolve([serverOf(this.version), ...this.live.values()]),
      objects: () => Promise.resolve([...this.live.values()]),
    };
    this.audit = new WriteAudit(this.trial);
  }

  async apply(kindName: string, version: number): Promise<void> {
    const list = (): Promise<AnyObject[]> => Promise.resolve([serverOf(version)]);
    const rendered = await renderingOf({ ...this.trial, list }, cr);
    const object = rendered.find((one) => one.kind === kindName)!;
    const annotations = { ...object.metadata.annotations, [APPLIED_HASH_ANNOTATION]: contentHash(object) };
    const owner = {
      apiVersion: cr.apiVersion,
      kind: cr.kind,
      name: 'pair',
      uid: 'pair-uid',
      controller: true,
    };
    const body = { ...object, metadata: { ...object.metadata, annotations, ownerReferences: [owner] } };
    const request = { method: 'PATCH', path: '/x', contentType: APPLY, body } as const;
    await this.audit.pass(request, () => {
      const generation = (this.live.get(kindName)?.metadata.generation ?? 0) + 1;
      const status = this.live.get(kindName)?.status;
      this.live.set(kindName, { ...body, metadata: { ...body.metadata, generation }, status });
      return Promise.resolve({ status: 200, body });
    });
  }

  rollOut(): void {
    const set = this.live.get('StatefulSet')!;
    const counts = { replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1 };
    const status = { observedGeneration: set.metadata.generation, ...counts };
    this.live.set('StatefulSet', { ...set, status });
  }
}

test('what depends on others may be applied by a state that has just changed, though it is rendered of the new one, too', async () => {
  const stage = new Stage();
  await stage.apply('StatefulSet', 1);
  stage.rollOut();
  stage.version = 2;
  await stage.apply('Job', 1);

  expect(stage.audit.broken).toBeUndefined();
  expect(stage.audit.dependents).toBe(1);
});

test.each<[what: string, act: (stage: Stage) => Promise<void>, reason: RegExp]>([
  ['before it', (stage) => stage.apply('Job', 1), /NotApplied/],
  [
    'before its next rendering, once that is applied',
    async (stage) => {
      await stage.apply('StatefulSet', 1);
      stage.rollOut();
      stage.version = 2;
      await stage.apply('StatefulSet', 2);
      await stage.apply('Job', 2);
    },
    /RollingOut/,
  ],
  [
    'while it is not ready in either',
    async (stage) => {
      await stage.apply('StatefulSet', 1);
      stage.version = 2;
      await stage.apply('Job', 1);
    },
    /NotApplied/,
  ],
])('what is applied %s is reported', async (_what, act, reason) => {
  const stage = new Stage();
  await act(stage);

  expect(stage.audit.broken).toMatch(reason);
});
