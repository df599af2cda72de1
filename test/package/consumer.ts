/** A module of somebody who writes a kind in TypeScript; the comments say where it must not compile. */
export const CONSUMER = `
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { defineKind, OperatorError, render } from 'reconstruct';
import type { AppServiceProps, KindProps } from 'reconstruct';
import { render as renderStored, requireHeld, sweep, withSandbox } from 'reconstruct/testing';

type AppServiceSpec = AppServiceProps['spec'];

interface NoteSpec {
  readonly text: string;
}

class Note extends Construct {
  constructor(scope: Construct, id: string, { metadata, spec }: { metadata: { name: string }; spec: NoteSpec }) {
    super(scope, id);
    if (spec.text === '') throw new OperatorError({ reason: 'Empty', message: 'There is nothing to note' });
    new ApiObject(this, 'Map', {
      apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: metadata.name }, data: { text: spec.text },
    });
  }
}

const schema = { type: 'object', properties: { spec: { type: 'object', properties: { text: { type: 'string' } } },
  status: { type: 'object', properties: {
    observedGeneration: { type: 'integer', format: 'int64' },
    conditions: { type: 'array', items: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
  } } } } as const;
const props: KindProps<NoteSpec, Record<string, unknown>> = {
  crd: {
    apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', metadata: { name: 'notes.example.com' },
    spec: {
      group: 'example.com', scope: 'Namespaced', names: { kind: 'Note', plural: 'notes', singular: 'note' },
      versions: [{ name: 'v1', served: true, storage: true, subresources: { status: {} }, schema: { openAPIV3Schema: schema } }],
    },
  },
  construct: Note,
  children: [{ apiVersion: 'v1', kind: 'ConfigMap' }],
  status: ({ cr }) => ({ readiness: { phase: 'ready', reason: 'Noted', message: cr.spec.text } }),
};
const kind = defineKind(props);
// @ts-expect-error A child has a kind.
export const wrong: KindProps<NoteSpec, object> = { ...props, children: [{ apiVersion: 'v1' }] };
// @ts-expect-error The type of a field is Kubernetes' own, and known.
export const typo: AppServiceSpec['ports'] = [{ prot: 80 }];
const note = {
  apiVersion: 'example.com/v1', kind: 'Note', metadata: { name: 'hello', namespace: 'default' }, spec: { text: 'world' },
};
export const swept = async () => { requireHeld(await sweep(kind, [note], { seed: 1, checks: ['kills', 'walk'] })); };
export const tested = () => withSandbox({ kinds: [kind] }, ({ cluster, makeNamespace }) => cluster.list(kind.type, 'default'));
// @ts-expect-error A check has a name.
export const unknown = () => sweep(kind, [note], { checks: ['everything'] });
console.log(JSON.stringify([...render(kind, note), ...renderStored(kind, note)]));
`;
