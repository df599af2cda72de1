import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { Yaml } from 'cdk8s';
import { render } from 'cdk8s-reconstruct/testing';
import { webPage } from './kind.mjs';

test('a page becomes a ConfigMap, a Deployment and a Service that leads to its Pods', () => {
  const [sample] = Yaml.load(join(import.meta.dirname, 'sample.yaml'));

  const [page, deployment, service] = render(webPage, sample);

  assert.deepEqual(page.data, { 'index.html': '<h1>Hello</h1>' });
  assert.equal(deployment.spec.replicas, 1);
  assert.deepEqual(service.spec.selector, deployment.spec.selector.matchLabels);
});
