import { ApiObject } from 'cdk8s';
import type { ApiObjectProps } from 'cdk8s';
import { Construct } from 'constructs';
import { expect, test } from 'vitest';
import { defineKind } from '../../src/contract/define-kind.js';
import type { CustomResourceProps } from '../../src/contract/kind.js';
import type { AnyObject } from '../../src/contract/object.js';
import { render, withEncodedSecret } from '../../src/synth/render.js';
import { widget, widgetCrd } from './fixtures.js';
import type { WidgetSpec } from './fixtures.js';

const secret = (parts: object): AnyObject => ({
  ...{ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'web' } },
  ...parts,
});

test('the text of a Secret is encoded, and stands beside what was encoded before', () => {
  expect(
    withEncodedSecret(secret({ type: 'Opaque', stringData: { b: 'grün' }, data: { a: 'MQ==' } })),
  ).toEqual(secret({ type: 'Opaque', data: { a: 'MQ==', b: 'Z3LDvG4=' } }));
});

test('the text wins over what is encoded under the same key, as in the API server', () => {
  expect(withEncodedSecret(secret({ stringData: { a: '2' }, data: { a: 'MQ==' } }))).toEqual(
    secret({ data: { a: 'Mg==' } }),
  );
});

test.for([
  ['a Secret without text', secret({ data: { a: 'MQ==' } })],
  ['a Secret whose text is no map', secret({ stringData: 'a' })],
  ['another kind', { ...secret({ stringData: { a: '1' } }), kind: 'ConfigMap' }],
  ['a Secret of another API', { ...secret({ stringData: { a: '1' } }), apiVersion: 'vault.io/v1' }],
] as const)('%s is left as it is', ([, object]) => {
  expect(withEncodedSecret(object)).toBe(object);
});

test('a construct may give text, and rendering encodes it', () => {
  class Credentials extends Construct {
    constructor(scope: Construct, id: string, { metadata }: CustomResourceProps<WidgetSpec>) {
      super(scope, id);
      const { name } = metadata;
      new ApiObject(this, 'Secret', {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name },
        stringData: { key: 'text' },
      } as object as ApiObjectProps);
    }
  }
  const children = [{ apiVersion: 'v1', kind: 'Secret' }];
  const kind = defineKind({ crd: widgetCrd(), construct: Credentials, children });

  const [rendered] = render(kind, widget('web', { image: 'nginx' }));

  expect(rendered).toMatchObject({ kind: 'Secret', data: { key: 'dGV4dA==' } });
  expect(rendered).not.toHaveProperty('stringData');
});
