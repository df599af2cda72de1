import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { defineCrd, defineKind, selectorLabels } from '../../lib/index.js';

const crd = defineCrd({
  group: 'bench.example.com',
  kind: 'Site',
  description: 'A ConfigMap, a Deployment and a Service.',
  spec: {
    type: 'object',
    required: ['image'],
    properties: {
      image: { type: 'string', enum: ['one:1', 'two:2'], description: 'What runs.' },
      replicas: {
        type: 'integer',
        format: 'int32',
        minimum: 0,
        maximum: 3,
        default: 1,
        description: 'How often.',
      },
      title: { type: 'string', description: 'What it is called.' },
      labels: {
        type: 'object',
        additionalProperties: { type: 'string' },
        description: 'Of the ConfigMap.',
      },
    },
  },
});

class Site extends Construct {
  constructor(scope, id, { metadata: { name }, spec }) {
    super(scope, id);
    const labels = selectorLabels(crd, name);
    const containers = [{ name: 'main', image: spec.image, imagePullPolicy: 'IfNotPresent' }];
    new ApiObject(this, 'Settings', {
      ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } },
      data: { title: spec.title ?? 'none', ...spec.labels },
    });
    new ApiObject(this, 'Deployment', {
      ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name } },
      spec: {
        replicas: spec.replicas,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers } },
      },
    });
    new ApiObject(this, 'Service', {
      ...{ apiVersion: 'v1', kind: 'Service', metadata: { name } },
      spec: { selector: labels, ports: [{ port: 80 }] },
    });
  }
}

/** A kind with three children, and samples of it. */
export function sampled() {
  const children = [
    { apiVersion: 'v1', kind: 'ConfigMap' },
    { apiVersion: 'apps/v1', kind: 'Deployment' },
    { apiVersion: 'v1', kind: 'Service' },
  ];
  const head = { apiVersion: 'bench.example.com/v1', kind: 'Site', metadata: { name: 'sample' } };
  const specs = [
    { image: 'one:1', title: 'first', labels: { a: '1', b: '2' } },
    { image: 'two:2', replicas: 2, labels: { a: '3' } },
  ];
  return {
    kind: defineKind({ crd, construct: Site, children }),
    samples: specs.map((spec) => ({ ...head, spec })),
  };
}
