/** A module of somebody who writes a kind in TypeScript; the comments say where it must not compile. */
export const CONSUMER = `
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { defineCrd, defineKind, OperatorError, renderStored, selectorLabels } from 'cdk8s-reconstruct';
import type { KindProps, PropsOf, SpecOf, StatusOf } from 'cdk8s-reconstruct';
import type { AppServiceProps } from 'cdk8s-reconstruct/kinds';
import { render, requireHeld, sweep, withSandbox } from 'cdk8s-reconstruct/testing';

type AppServiceSpec = AppServiceProps['spec'];

const crd = defineCrd({
  group: 'notes.example.com',
  kind: 'Note',
  description: 'Something to remember.',
  spec: {
    type: 'object',
    required: ['text'],
    properties: { text: { type: 'string', minLength: 1 }, copies: { type: 'integer', default: 1 } },
  },
  status: { length: { type: 'integer' } },
  columns: [{ name: 'Text', type: 'string', jsonPath: '.spec.text' }],
});

class Note extends Construct {
  constructor(scope: Construct, id: string, { metadata, spec }: PropsOf<typeof crd>) {
    super(scope, id);
    if (spec.text === '') throw new OperatorError({ reason: 'Empty', message: 'There is nothing to note' });
    new ApiObject(this, 'Map', {
      apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: metadata.name, labels: selectorLabels(crd, id) },
      data: { text: spec.text.repeat(spec.copies) },
    });
  }
}

type NoteSpec = SpecOf<typeof crd>;
const props: KindProps<NoteSpec, StatusOf<typeof crd>> = {
  crd,
  construct: Note,
  children: [{ apiVersion: 'v1', kind: 'ConfigMap' }],
  status: ({ cr }) => ({ fields: { length: cr.spec.text.length } }),
};
const kind = defineKind(props);
// @ts-expect-error The spec has no title.
export const untitled = (spec: NoteSpec) => spec.title;
// @ts-expect-error What has a default is there, and a number.
export const uncounted: NoteSpec = { text: 'world', copies: undefined };
// @ts-expect-error A child has a kind.
export const wrong: KindProps<NoteSpec, StatusOf<typeof crd>> = { ...props, children: [{ apiVersion: 'v1' }] };
// @ts-expect-error The type of a field is Kubernetes' own, and known.
export const typo: AppServiceSpec['ports'] = [{ prot: 80 }];
const note = {
  apiVersion: 'notes.example.com/v1', kind: 'Note', metadata: { name: 'hello', namespace: 'default' }, spec: { text: 'world', copies: 1 },
};
export const swept = async () => { requireHeld(await sweep(kind, [note], { seed: 1, checks: ['kills', 'walk'] })); };
export const tested = () => withSandbox({ kinds: [kind] }, ({ cluster, makeNamespace }) => cluster.list(kind.type, 'default'));
// @ts-expect-error A check has a name.
export const unknown = () => sweep(kind, [note], { checks: ['everything'] });
console.log(JSON.stringify([...renderStored(kind, note), ...render(kind, note)]));
`;
