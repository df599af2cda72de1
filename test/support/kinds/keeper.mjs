// @ts-check
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { defineCrd, defineKind } from 'cdk8s-reconstruct';

const crd = defineCrd({
  ...{ group: 'test.example.com', kind: 'Keeper', description: 'A ConfigMap.' },
  spec: /** @type {const} */ ({ type: 'object', properties: { value: { type: 'string', default: 'a' } } }),
});

class Keeper extends Construct {
  /**
   * @param {Construct} scope
   * @param {string} id
   * @param {import('cdk8s-reconstruct').PropsOf<typeof crd, {}>} props
   */
  constructor(scope, id, { metadata: { name }, spec: { value } }) {
    super(scope, id);
    new ApiObject(this, 'Config', {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name },
      data: { value },
    });
  }
}

/** @param {'keep' | 'delete'} onDelete */
export const keeper = (onDelete) =>
  defineKind({
    ...{ crd, construct: Keeper },
    children: [{ apiVersion: 'v1', kind: 'ConfigMap', onDelete }],
  });
