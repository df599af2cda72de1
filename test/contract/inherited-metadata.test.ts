import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { expect, test } from 'vitest';
import { defineCrd } from '../../src/author/define-crd.js';
import { defineKind } from '../../src/author/define-kind.js';
import { inheritedMetadata } from '../../src/author/inherited-metadata.js';
import type { PropsOf } from '../../src/author/typed-crd.js';
import { render } from '../../src/testing/render.js';

const crd = defineCrd({
  ...{ group: 'demo.io', kind: 'Gadget', description: 'A ConfigMap.' },
  spec: { type: 'object', properties: {} } as const,
});

class Gadget extends Construct {
  constructor(scope: Construct, id: string, { metadata }: PropsOf<typeof crd>) {
    super(scope, id);
    new ApiObject(this, 'Config', {
      ...{ apiVersion: 'v1', kind: 'ConfigMap' },
      metadata: { name: metadata.name, ...inheritedMetadata(metadata, ['team', 'billing.example.com/*']) },
    });
  }
}

const metadata = {
  ...{ name: 'web', namespace: 'shop' },
  labels: { team: 'blue', teams: 'all' },
  annotations: {
    'billing.example.com/code': '7',
    'kubectl.kubernetes.io/last-applied-configuration': '{}',
    'reconstruct.kosmos.io/drift': 'warn',
  },
};

const rendered = (readsMetadata: boolean): unknown => {
  const kind = defineKind({
    ...{ crd, construct: Gadget, readsMetadata },
    children: [{ apiVersion: 'v1', kind: 'ConfigMap' }],
  });
  return render(kind, { apiVersion: 'demo.io/v1', kind: 'Gadget', metadata, spec: {} })[0]?.metadata;
};

test('labels and annotations of a custom resource are copied by their names, of a kind that reads them', () => {
  expect(rendered(true)).toMatchObject({
    labels: { team: 'blue', app: 'web' },
    annotations: { 'billing.example.com/code': '7' },
  });
  expect(rendered(true)).not.toHaveProperty('labels.teams');
  expect(rendered(false)).not.toHaveProperty('labels.team');
  expect(rendered(false)).not.toHaveProperty('annotations');
});

test('none of this project or of kubectl is copied, whatever the names', () => {
  expect(inheritedMetadata({ name: 'web' }, ['*'])).toEqual({});
  class Greedy extends Construct {
    constructor(scope: Construct, id: string, props: PropsOf<typeof crd>) {
      super(scope, id);
      expect(inheritedMetadata(props.metadata, ['*'])).toEqual({
        labels: metadata.labels,
        annotations: { 'billing.example.com/code': '7' },
      });
    }
  }
  const kind = defineKind({ ...{ crd, construct: Greedy, readsMetadata: true }, children: [] });
  render(kind, { apiVersion: 'demo.io/v1', kind: 'Gadget', metadata, spec: {} });
});
