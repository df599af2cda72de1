import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { Yaml } from 'cdk8s';
import type { AnyObject } from 'cdk8s-reconstruct';
import { render } from 'cdk8s-reconstruct/testing';
import { eventBus } from './kind.ts';

const folder = import.meta.dirname;
const [sample] = Yaml.load(join(folder, 'sample.yaml')) as [AnyObject];

/** What of the StatefulSet these tests look at. */
interface Servers {
  readonly replicas: number;
  readonly template: {
    readonly metadata: { readonly annotations: Readonly<Record<string, string>> };
    readonly spec: { readonly containers: readonly [{ readonly env: readonly { readonly name: string }[] }] };
  };
}

function rendered(changes: Readonly<Record<string, unknown>> = {}): readonly AnyObject[] {
  return render(eventBus, { ...sample, spec: { ...(sample.spec as object), ...changes } });
}

function conf(changes: Readonly<Record<string, unknown>> = {}): string {
  const { data } = rendered(changes).find(({ kind }) => kind === 'ConfigMap') as AnyObject;
  return (data as Readonly<Record<string, string>>)['nats.conf'] ?? '';
}

function servers(changes: Readonly<Record<string, unknown>> = {}): Servers {
  return rendered(changes).find(({ kind }) => kind === 'StatefulSet')?.spec as Servers;
}

test('the sample is rendered as it was', (t: TestContext) => {
  t.assert.fileSnapshot(Yaml.stringify(...rendered()), join(folder, '__snapshots__/sample.yaml'), {
    serializers: [(text) => text as string],
  });
});

test('another setting is another template, so that the pods are replaced', () => {
  const { template } = servers();

  assert.notDeepEqual(servers({ maxPayloadKiB: 2048 }).template, template);
  assert.notDeepEqual(servers({ debug: true }).template, template);
  assert.deepEqual(servers({ whenDeleted: 'Delete' }).template, template);
});

test('servers are told of each other, and one alone is not', () => {
  assert.match(
    conf({ replicas: 3 }),
    /routes: \[nats:\/\/orders-0\.orders-peers:6222, .*orders-2\.orders-peers:6222\]/,
  );
  assert.doesNotMatch(conf({ replicas: 1 }), /cluster/);
});

test('a token is asked for where there is a Secret, and stands in no object', () => {
  assert.doesNotMatch(conf(), /token/);
  assert.match(conf({ tokenSecret: 'orders' }), /authorization \{ token: \$TOKEN \}/);
  const names = servers({ tokenSecret: 'orders' }).template.spec.containers[0].env.map(({ name }) => name);
  assert.deepEqual(names, ['POD_NAME', 'GOMEMLIMIT', 'TOKEN']);
});
