import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { onTestFinished } from 'vitest';
import type { CustomResourceDefinition, StructuralSchema } from '../../src/contract/crd.js';
import { defineKind } from '../../src/author/define-kind.js';
import type { CustomResourceProps, OwnedKind } from '../../src/contract/kind.js';
import type { CustomResource } from '../../src/contract/object.js';

export interface WidgetSpec {
  readonly image: string;
  readonly size?: number;
  readonly ports?: readonly { readonly port: number; readonly protocol?: string }[];
  readonly settings?: Readonly<Record<string, string>>;
}

const WIDGET_SPEC: StructuralSchema = {
  type: 'object',
  required: ['image'],
  properties: {
    image: { type: 'string', minLength: 1 },
    size: { type: 'integer', format: 'int32', minimum: 0, default: 1 },
    ports: {
      type: 'array',
      maxItems: 3,
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['port', 'protocol'],
      items: {
        type: 'object',
        required: ['port'],
        properties: {
          port: { type: 'integer', minimum: 1, maximum: 65535 },
          protocol: { type: 'string', enum: ['TCP', 'UDP', 'SCTP'], default: 'TCP' },
          targetPort: {
            'x-kubernetes-int-or-string': true,
            anyOf: [{ type: 'integer' }, { type: 'string' }],
          },
        },
      },
    },
    settings: { type: 'object', additionalProperties: { type: 'string' } },
    tags: { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'set' },
    note: { type: 'string', nullable: true },
    free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    until: { type: 'string', format: 'date-time' },
    grace: { type: 'string', format: 'duration' },
    code: { type: 'string', pattern: '^[a-z]+$', maxLength: 5 },
  },
};

/** The CRD of a small kind that has one of everything. */
export function widgetCrd(
  names: { readonly kind?: string; readonly group?: string; readonly scope?: 'Namespaced' | 'Cluster' } = {},
): CustomResourceDefinition {
  const { kind = 'Widget', group = 'demo.example.com', scope = 'Namespaced' } = names;
  const schema = {
    openAPIV3Schema: {
      type: 'object',
      required: ['spec'],
      properties: {
        apiVersion: { type: 'string' },
        kind: { type: 'string' },
        metadata: { type: 'object' },
        spec: WIDGET_SPEC,
        status: {
          type: 'object',
          properties: {
            observedGeneration: { type: 'integer' },
            conditions: {
              type: 'array',
              'x-kubernetes-list-type': 'map',
              'x-kubernetes-list-map-keys': ['type'],
              items: { type: 'object', properties: { type: { type: 'string' } } },
            },
            ready: { type: 'integer' },
          },
        },
      },
    },
  } as const;
  const subresources = { status: {} };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${kind.toLowerCase()}s.${group}` },
    spec: {
      group,
      scope,
      names: { kind, plural: `${kind.toLowerCase()}s` },
      versions: [
        { name: 'v1', served: true, storage: true, schema, subresources },
        { name: 'v1beta1', served: true, storage: false, schema, subresources },
        { name: 'v1alpha1', served: false, storage: false, schema, subresources },
      ],
    },
  };
}

/** Makes a ConfigMap with what it is given, and a Service where there are ports. */
export class Widget extends Construct {
  constructor(scope: Construct, id: string, { metadata: { name }, spec }: CustomResourceProps<WidgetSpec>) {
    super(scope, id);
    this.node.defaultChild = new ApiObject(this, 'Config', {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name },
      data: { image: spec.image, size: String(spec.size), ...spec.settings },
    });
    if (spec.ports?.length) {
      new ApiObject(this, 'Service', {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name },
        spec: { ports: spec.ports },
      });
    }
  }
}

const CLUSTER_ROLE = {
  ...{ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole' },
  namespaced: false,
};

/** The kind of `widgetCrd`. */
export function widgetKind(
  names: Parameters<typeof widgetCrd>[0] = {},
  construct: new (scope: Construct, id: string, props: CustomResourceProps<WidgetSpec>) => Construct = Widget,
): OwnedKind {
  return defineKind<WidgetSpec>({
    crd: widgetCrd(names),
    construct,
    children: [
      { apiVersion: 'v1', kind: 'ConfigMap' },
      { apiVersion: 'v1', kind: 'Service' },
      ...(names.scope === 'Cluster' ? [CLUSTER_ROLE] : []),
    ],
  });
}

/** A valid custom resource. */
export function widget(name = 'web', spec: object = { image: 'nginx' }): CustomResource {
  return {
    apiVersion: 'demo.example.com/v1',
    kind: 'Widget',
    metadata: { name, namespace: 'shop' },
    spec,
  };
}

/** A folder with these files, gone when the test is over. */
export function folderWith(files: Readonly<Record<string, string>> = {}): string {
  const folder = mkdtempSync(join(tmpdir(), 'reconstruct-test-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}
