// @ts-check
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { defineCrd, defineKind } from 'cdk8s-reconstruct';

const apiVersion = 'nginx-stream.jeffthecoder.xyz/v1beta1';
const crd = defineCrd({
  ...{
    group: 'test.example.com',
    kind: 'Marker',
    description: 'Marks a StreamIngress, which may not be installed.',
  },
  spec: /** @type {const} */ ({ type: 'object', properties: { stream: { type: 'string' } } }),
});

/** Sets an annotation of a StreamIngress, or makes a ConfigMap. */
class Marker extends Construct {
  /**
   * @param {Construct} scope
   * @param {string} id
   * @param {import('cdk8s-reconstruct').PropsOf<typeof crd>} props
   */
  constructor(scope, id, { spec: { stream }, metadata: { name } }) {
    super(scope, id);
    if (stream === undefined)
      new ApiObject(this, 'Config', { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } });
    else {
      const annotations = { 'test.example.com/mark': name };
      new ApiObject(this, 'Stream', {
        apiVersion,
        kind: 'StreamIngress',
        metadata: { name: stream, annotations },
      });
    }
  }
}

export const marker = defineKind({
  ...{ crd, construct: Marker },
  children: [{ apiVersion: 'v1', kind: 'ConfigMap' }],
  contributes: [{ apiVersion, kind: 'StreamIngress' }],
});

export default { kinds: [marker] };
